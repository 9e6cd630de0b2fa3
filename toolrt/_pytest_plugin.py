"""What pytest loads by itself where toolrt is installed: as good as nothing, until a test asks for more.

The plugin proper is `toolrt.testing.plugin`.  It needs the ``testing`` extra, and this module must not: it is
loaded in every project that has toolrt among its packages.  Only options have to be known this early.
"""

from __future__ import annotations

import copy

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the options known."""
    group = parser.getgroup("explore", "exploring schedules (toolrt)")
    group.addoption(
        "--explore",
        nargs="?",
        const="",
        metavar="N",
        help="explore every async test that runs on Trio, marked or not; --explore=N: N executions of each",
    )
    group.addoption(
        "--explore-changed",
        nargs="?",
        const="",
        metavar="REF",
        help="as --explore, but skip each test whose code has not changed since it was explored; "
        "--explore-changed=REF: since the branch left that commit",
    )
    group.addoption("--explore-json", metavar="FILE", help="write what --explore found of each test to this file")
    group.addoption(
        "--explore-html", metavar="DIR", help="write the page of each failure of an explored test to this directory"
    )
    group.addoption(
        "--explore-repair",
        action="store_true",
        help="say of each failure what would mend it: locks, shields and orders that were explored, too",
    )
    group.addoption(
        "--explore-reproduce",
        metavar="DIR",
        help="write each failure of an explored test to this directory as a program that fails without toolrt",
    )
    group.addoption(
        "--explore-verbose",
        action="store_true",
        help="tell all of each failure: every step, who waits for whom, the race; without it what fits on a screen",
    )
    group.addoption(
        "--explore-strategy",
        metavar="NAME",
        help="strategy of the explored tests whose marker names none: portfolio (the default), dpor, random, ...",
    )
    group.addoption(
        "--explore-seconds",
        type=float,
        metavar="S",
        help="wall seconds after which an explored test begins no further execution",
    )
    group.addoption(
        "--explore-executions",
        type=int,
        metavar="N",
        help="executions of each explored test, whatever its marker says: the size of a sample, the most of a search",
    )
    group.addoption(
        "--explore-seed",
        type=int,
        metavar="SEED",
        help="seed of the explored tests that name no strategy, or one by its name; 0 by default",
    )
    group.addoption(
        "--explore-order",
        choices=("any", "trio"),
        help="which task may step next, whatever the marker says: any that can run, or each once per pass, as in Trio",
    )
    group.addoption(
        "--explore-track",
        action="append",
        metavar="PKG",
        help="a module or package that explored tests track, beside what their markers say and their own module, or"
        " none: not their own module; may come several times",
    )
    group.addoption(
        "--explore-replay",
        metavar="SCHEDULE",
        help="run the explored tests under this schedule only, as a failure printed it",
    )
    group.addoption(
        "--explore-database",
        metavar="DIRECTORY",
        help="keep schedules that failed here, and try them first; by default Hypothesis' database",
    )
    parser.addini("explore_order", "order of explored tests, any or trio, where --explore-order gives none", default="")
    parser.addini("explore_database", "directory that keeps schedules that failed, from the root directory", default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Keep ``--explore tests/`` from taking the path for its number: only ``--explore=N`` takes one."""
    bare = ("--explore", "--explore-changed")
    if any(arg in bare for arg in args):
        args[:] = [f"{arg}=" if arg in bare else arg for arg in args]
        early_config.known_args_namespace = parser.parse_known_args(args, copy.copy(early_config.option))


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, whether or not the extra is there."""
    config.addinivalue_line(
        "markers",
        "explore(strategy=None, executions=None, seed=0, check=None, outcomes=None, step_limit=None, "
        "cancel_at=None, crash_at=None, clock=None, clock_moves=None, order='any', jobs=1, seconds=None, track=None, "
        "repairs=False): "
        "run this async test under many schedules in virtual time (toolrt)",
    )

    changed = config.getoption("explore_changed")
    if changed is not None and config.option.explore is None:
        config.option.explore = ""
    if config.getoption("explore") is not None:
        from toolrt.testing._unedited import Unedited, checked_number

        checked_number(config.getoption("explore"))
        config.pluginmanager.register(Unedited(config, changed), "toolrt.explore")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Load the plugin proper if some test is marked.

    Raises:
        MissingExtra: the ``testing`` extra is not installed, and a test is marked.
    """
    if config.getoption("explore") is not None or any(item.get_closest_marker("explore") for item in items):
        from toolrt.testing import plugin

        if not config.pluginmanager.is_registered(plugin):
            config.pluginmanager.register(plugin, "toolrt.testing")
