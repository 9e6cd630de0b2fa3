"""A shop's database and fifteen tools on it, in the shape of the retail domain of tau-bench (Yao et al., 2024).

Every call to the database takes time, and every tool that changes a row reads it first: a wrong claim loses an update.

    python docs/examples/retail/retail.py     runs drawn batches serially and by claims, on virtual time, and compares
"""

from __future__ import annotations

import copy
import random
from typing import Any

import trio

import toolrt
from toolrt import READ, WRITE, Claim, Mode, Registry, Row, Runtime, State, Tool, ToolCall, ToolContext, sim, tool

Table = dict[str, dict[str, Any]]
Address = str


class Refusal(Exception):
    """What a tool answers when the shop's rules say no."""


class Store:
    """Tables in memory, behind calls that take virtual seconds.

    Args:
        tables: the rows by table and key.
    """

    def __init__(self, tables: dict[str, Table]) -> None:
        self.tables = copy.deepcopy(tables)
        #: Every runtime on this store takes its tickets here.
        self.claim_table = toolrt.ClaimTable("retail")

    def snapshot(self) -> dict[str, Table]:
        """All rows, as a copy."""
        return copy.deepcopy(self.tables)

    def restore(self, snapshot: dict[str, Table]) -> None:
        """Make the rows those of a snapshot."""
        self.tables = copy.deepcopy(snapshot)

    async def get(self, table: str, key: str) -> dict[str, Any]:
        """One row, as a copy."""
        await trio.sleep(0.25)
        if key not in self.tables[table]:
            raise Refusal(f"there is no {key} in {table}")
        return copy.deepcopy(self.tables[table][key])

    async def put(self, table: str, key: str, row: dict[str, Any]) -> None:
        """Write one row."""
        await trio.sleep(0.25)
        self.tables[table][key] = copy.deepcopy(row)

    async def scan(self, table: str) -> Table:
        """All rows of a table, as a copy."""
        await trio.sleep(0.25)
        return copy.deepcopy(self.tables[table])


ORDER = Row("orders", "order_id")
USER = Row("users", "user_id")
WALLET = Row("wallets", "user_id")
PRODUCT = Row("products", "product_id")


def tools_of(store: Store) -> list[Tool]:
    """The fifteen tools on `store`."""

    def changes_order(wallet: Mode, *more: Claim) -> Any:
        """Claims of a tool that writes an order and touches its user's wallet, which is found through the order.

        An order's user never changes.  A column that can change needs ``claims_after={ORDER: READ}`` as well.
        """

        def claims(input: Any, state: State) -> list[Claim]:
            found = store.tables["orders"].get(input["order_id"], {}).get("user_id")
            return [*ORDER.claims(input, WRITE), *WALLET.claims({"user_id": found}, wallet), *more]

        return claims

    all_products = Claim(("products",), READ, subtree=True)

    @tool(claims={Row("users"): READ}, owner=store)
    async def find_user_id_by_email(ctx: ToolContext, email: str) -> str:
        """The id of the user with this address of mail."""
        return _one([key for key, user in (await store.scan("users")).items() if user["email"] == email])

    @tool(claims={Row("users"): READ}, owner=store)
    async def find_user_id_by_name_zip(ctx: ToolContext, name: str, zip: str) -> str:
        """The id of the user of this name and zip code."""
        users = await store.scan("users")
        return _one([key for key, user in users.items() if user["name"] == name and user["address"].endswith(zip)])

    @tool(claims={USER: READ, WALLET: READ}, owner=store)
    async def get_user_details(ctx: ToolContext, user_id: str) -> dict[str, Any]:
        """A user's row, and what is in the wallet."""
        return await store.get("users", user_id) | {"wallet": await store.get("wallets", user_id)}

    @tool(claims={ORDER: READ}, owner=store)
    async def get_order_details(ctx: ToolContext, order_id: str) -> dict[str, Any]:
        """An order's row."""
        return await store.get("orders", order_id)

    @tool(claims={PRODUCT: READ}, owner=store)
    async def get_product_details(ctx: ToolContext, product_id: str) -> dict[str, Any]:
        """A product's row, with its items."""
        return await store.get("products", product_id)

    @tool(claims={Row("products"): READ}, owner=store)
    async def list_all_product_types(ctx: ToolContext) -> dict[str, str]:
        """The ids of all products, by name."""
        return {product["name"]: key for key, product in (await store.scan("products")).items()}

    @tool(safe=True)
    async def calculate(ctx: ToolContext, cents: list[int]) -> int:
        """The sum of some prices."""
        return sum(cents)

    @tool(claims=changes_order(WRITE), owner=store)
    async def cancel_pending_order(ctx: ToolContext, order_id: str, reason: str) -> str:
        """Cancel an order and pay the money back."""
        order = await _order(store, order_id, "pending")
        await _pay(store, order, order["paid_by"], -order["cents"])
        await store.put("orders", order_id, order | {"status": f"cancelled: {reason}"})
        return f"{order_id} is cancelled"

    @tool(claims={ORDER: WRITE}, owner=store)
    async def modify_pending_order_address(ctx: ToolContext, order_id: str, address: Address) -> str:
        """Send an order elsewhere."""
        order = await _order(store, order_id, "pending")
        await store.put("orders", order_id, order | {"address": address})
        return f"{order_id} goes to {address}"

    @tool(claims=changes_order(WRITE, all_products), owner=store)
    async def modify_pending_order_items(
        ctx: ToolContext, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Replace items of an order and settle the difference."""
        order = await _order(store, order_id, "pending")
        order, difference = await _exchanged(store, order, item_ids, new_item_ids)
        await _pay(store, order, payment_method_id, difference)
        await store.put("orders", order_id, order | {"cents": order["cents"] + difference})
        return f"{order_id} costs {order['cents'] + difference}"

    @tool(claims=changes_order(WRITE), owner=store)
    async def modify_pending_order_payment(ctx: ToolContext, order_id: str, payment_method_id: str) -> str:
        """Pay an order in another way."""
        order = await _order(store, order_id, "pending")
        if order["paid_by"] == payment_method_id:
            raise Refusal("it is paid in that way")
        await _pay(store, order, payment_method_id, order["cents"])
        await _pay(store, order, order["paid_by"], -order["cents"])
        await store.put("orders", order_id, order | {"paid_by": payment_method_id})
        return f"{order_id} is paid by {payment_method_id}"

    @tool(claims={USER: WRITE}, owner=store)
    async def modify_user_address(ctx: ToolContext, user_id: str, address: Address) -> str:
        """Change where a user lives."""
        user = await store.get("users", user_id)
        await store.put("users", user_id, user | {"address": address})
        return f"{user_id} lives at {address}"

    @tool(claims=changes_order(READ), owner=store)
    async def return_delivered_order_items(
        ctx: ToolContext, order_id: str, item_ids: list[str], payment_method_id: str
    ) -> str:
        """Ask for items to be taken back."""
        order = await _order(store, order_id, "delivered")
        await _pay(store, order, payment_method_id, 0)
        if not set(item_ids) <= set(order["items"]):
            raise Refusal("these items are not in the order")
        await store.put("orders", order_id, order | {"status": "return requested", "returned": item_ids})
        return f"{order_id} is on its way back"

    @tool(claims=changes_order(READ, all_products), owner=store)
    async def exchange_delivered_order_items(
        ctx: ToolContext, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Ask for items to be exchanged; the difference is settled later."""
        order = await _order(store, order_id, "delivered")
        await _pay(store, order, payment_method_id, 0)
        order, difference = await _exchanged(store, order, item_ids, new_item_ids)
        await store.put("orders", order_id, order | {"status": "exchange requested", "difference": difference})
        return f"{order_id} differs by {difference}"

    @tool(claims={Row("handovers"): WRITE}, owner=store)
    async def transfer_to_human_agents(ctx: ToolContext, summary: str) -> int:
        """Write down what a person has to do, and give its number."""
        number = len(await store.scan("handovers")) + 1
        await store.put("handovers", str(number), {"summary": summary})
        return number

    return [
        find_user_id_by_email, find_user_id_by_name_zip, get_user_details, get_order_details, get_product_details,
        list_all_product_types, calculate, cancel_pending_order, modify_pending_order_address,
        modify_pending_order_items, modify_pending_order_payment, modify_user_address, return_delivered_order_items,
        exchange_delivered_order_items, transfer_to_human_agents,
    ]  # fmt: skip


def _one(found: list[str]) -> str:
    if len(found) != 1:
        raise Refusal(f"there are {len(found)} such users")
    return found[0]


async def _order(store: Store, order_id: str, status: str) -> dict[str, Any]:
    order = await store.get("orders", order_id)
    if order["status"] != status:
        raise Refusal(f"{order_id} is not {status}")
    return order


async def _exchanged(store: Store, order: dict[str, Any], old: list[str], new: list[str]) -> tuple[dict[str, Any], int]:
    """The order with other items, and how many cents more they cost."""
    prices = {
        item: cents for product in (await store.scan("products")).values() for item, cents in product["items"].items()
    }
    if len(old) != len(new) or not set(old) <= set(order["items"]) or not set(new) <= set(prices):
        raise Refusal("these items cannot be exchanged")
    kept = [item for item in order["items"] if item not in old]
    return order | {"items": [*kept, *new]}, sum(prices[item] for item in new) - sum(prices[item] for item in old)


async def _pay(store: Store, order: dict[str, Any], method: str, cents: int) -> None:
    """Take `cents` from a user's method of payment, or give them back; a gift card has a balance."""
    wallet = await store.get("wallets", order["user_id"])
    if method not in wallet:
        raise Refusal(f"{order['user_id']} has no {method}")
    balance = wallet[method]
    if balance is None or cents == 0:
        return
    if balance < cents:
        raise Refusal(f"{method} has {balance} cents")
    await store.put("wallets", order["user_id"], wallet | {method: balance - cents})


def shop(users: int = 8, products: int = 6) -> dict[str, Table]:
    """The rows of a small shop: two orders for each user, one of them delivered."""
    tables: dict[str, Table] = {"users": {}, "wallets": {}, "orders": {}, "products": {}, "handovers": {}}
    for at in range(products):
        items = {f"item_{at}_{one}": 1_000 * (at + 1) + 100 * one for one in range(3)}
        tables["products"][f"product_{at}"] = {"name": f"kind {at}", "items": items}
    for at in range(users):
        who = f"user_{at}"
        tables["users"][who] = {
            "name": f"name {at}",
            "email": f"{who}@shop.example",
            "address": f"{at} Main Street, 1000{at}",
        }
        tables["wallets"][who] = {"card": None, "gift": 20_000}
        for status in ("pending", "delivered"):
            kind = (at + (status == "delivered")) % products
            tables["orders"][f"W{at}{status[0]}"] = {
                "user_id": who,
                "status": status,
                "items": [f"item_{kind}_0", f"item_{kind}_1"],
                "cents": 2_000 * (kind + 1) + 100,
                "paid_by": "card" if at % 2 else "gift",
                "address": f"{at} Main Street, 1000{at}",
            }
    return tables


def drawn(seed: int, size: int = 8, users: int = 8, products: int = 6) -> list[ToolCall]:
    """A batch of `size` calls, as a model gives them that serves several customers of the shop at once."""
    draw = random.Random(seed)
    calls = []
    for at in range(size):
        user, kind = draw.randrange(users), draw.randrange(products)
        who, pending, delivered = f"user_{user}", f"W{user}p", f"W{user}d"
        mine, other, method = f"item_{user % products}_0", f"item_{kind}_2", draw.choice(["card", "gift"])
        back = f"item_{(user + 1) % products}_1"
        name, input = draw.choice([
            ("find_user_id_by_email", {"email": f"{who}@shop.example"}),
            ("find_user_id_by_name_zip", {"name": f"name {user}", "zip": f"1000{user}"}),
            ("get_user_details", {"user_id": who}),
            ("get_order_details", {"order_id": draw.choice([pending, delivered])}),
            ("get_product_details", {"product_id": f"product_{kind}"}),
            ("list_all_product_types", {}),
            ("calculate", {"cents": [kind, user]}),
            ("cancel_pending_order", {"order_id": pending, "reason": "no longer needed"}),
            ("modify_pending_order_address", {"order_id": pending, "address": f"{kind} Side Street, 2000{kind}"}),
            ("modify_pending_order_items", {"order_id": pending, "item_ids": [mine], "new_item_ids": [other],
                                            "payment_method_id": method}),
            ("modify_pending_order_payment", {"order_id": pending, "payment_method_id": method}),
            ("modify_user_address", {"user_id": who, "address": f"{kind} Side Street, 2000{kind}"}),
            ("return_delivered_order_items", {"order_id": delivered, "item_ids": [back], "payment_method_id": method}),
            ("exchange_delivered_order_items", {"order_id": delivered, "item_ids": [back], "new_item_ids": [other],
                                                "payment_method_id": method}),
            ("transfer_to_human_agents", {"summary": f"{who} wants a person"}),
        ])  # fmt: skip
        calls.append(ToolCall(f"call_{at}", name, input))
    return calls


def ran(
    calls: list[ToolCall], lanes: Any = toolrt.by_claims, policy: Any = None
) -> tuple[float, list[Any], dict[str, Table]]:
    """Run `calls` on a new shop: the virtual seconds they took, what they answered, and the rows they left."""

    async def batch() -> tuple[float, list[Any], dict[str, Table]]:
        store = Store(shop())
        done = await Runtime(Registry(tools_of(store)), lanes=lanes).run(calls)
        answers = [(result.outcome.name, result.content, result.error) for result in done.results]
        return trio.current_time(), answers, store.snapshot()

    execution = sim.run(batch, policy) if policy is not None else sim.run(batch)
    if execution.error is not None:
        raise execution.error
    seconds, answers, rows = execution.value
    return seconds, answers, rows


def main(batches: int = 50) -> None:
    """Compare serial and by claims over drawn batches."""
    one = many = 0.0
    for seed in range(batches):
        calls = drawn(seed)
        slow, answers, rows = ran(calls, toolrt.serial)
        fast, *same = ran(calls)
        assert same == [answers, rows], f"batch {seed} differs from its serial run"
        one, many = one + slow, many + fast
    print(f"{batches} batches of 8 calls: {one:g} virtual seconds serially, {many:g} by claims")
    print(f"{one / many:.2f} times faster, with the same answers and the same rows in each")


if __name__ == "__main__":
    main()
