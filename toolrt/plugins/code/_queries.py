"""What is asked of the trees of each language, in tree-sitter's query language.

Rules.  Captures say what a node is, whatever the language:

- ``def.KIND``: a symbol of that kind; with it ``name``, and ``body`` where it has one (else the signature is all of
  it).  ``scope`` is what symbols are in without being one (Rust's ``impl``).
- ``based`` and ``base``: a symbol, and something that it inherits from or implements.
- ``call``: what is called, or for some languages the node of the call.
- ``import``: a node that says where names come from.

Patterns are separated by empty lines: one that a version of a grammar does not know is left out alone, which the tests
of that language notice.
"""

PYTHON = """
(function_definition) @def.function

(class_definition) @def.class

(call function: (_) @call)

[(import_statement) (import_from_statement) (future_import_statement)] @import

(assignment) @assign

(named_expression) @walrus

(return_statement (_) @return)

(as_pattern) @as

(for_statement) @for

(for_in_clause) @for

(decorator (_) @decorator)

(yield) @yield
"""

_SCRIPT = """
(function_declaration name: (_) @name body: (_) @body) @def.function

(generator_function_declaration name: (_) @name body: (_) @body) @def.function

(class_declaration name: (_) @name body: (_) @body) @def.class

(class_declaration (class_heritage) @base) @based

(method_definition name: (_) @name body: (_) @body) @def.method

(variable_declarator name: (identifier) @name value: [
  (arrow_function body: (_) @body) (function_expression body: (_) @body) (generator_function body: (_) @body)
]) @def.function

(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @def.class

(assignment_expression left: (member_expression property: (property_identifier) @name) right: [
  (arrow_function body: (_) @body) (function_expression body: (_) @body)
]) @def.function

(pair key: (property_identifier) @name value: [
  (arrow_function body: (_) @body) (function_expression body: (_) @body)
]) @def.function

(call_expression function: [(identifier) (member_expression)] @call)

(new_expression constructor: (_) @call)

(import_statement) @import

(export_statement source: (_)) @import

(variable_declarator value: (call_expression function: (identifier) @_require arguments: (arguments (string)))
  (#eq? @_require "require")) @import
"""

JAVASCRIPT = (
    _SCRIPT
    + """
(field_definition property: (_) @name value: [
  (arrow_function body: (_) @body) (function_expression body: (_) @body)
]) @def.method
"""
)

TYPESCRIPT = (
    _SCRIPT
    + """
(public_field_definition name: (_) @name value: [
  (arrow_function body: (_) @body) (function_expression body: (_) @body)
]) @def.method

(abstract_class_declaration name: (_) @name body: (_) @body) @def.class

(abstract_class_declaration (class_heritage) @base) @based

(interface_declaration name: (_) @name body: (_) @body) @def.interface

(interface_declaration (extends_type_clause) @base) @based

(enum_declaration name: (_) @name body: (_) @body) @def.enum

(type_alias_declaration name: (_) @name) @def.type

(function_signature name: (_) @name) @def.function

(method_signature name: (_) @name) @def.method

(abstract_method_signature name: (_) @name) @def.method

(internal_module name: (_) @name body: (_) @body) @def.namespace

(module name: (_) @name body: (_) @body) @def.namespace
"""
)

GO = """
(function_declaration name: (_) @name body: (_) @body) @def.function

(method_declaration receiver: (_) @receiver name: (_) @name body: (_) @body) @def.method

(type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @def.struct

(type_spec name: (_) @name type: (interface_type) @body) @def.interface

(type_spec name: (_) @name type: [
  (type_identifier) (qualified_type) (function_type) (map_type) (slice_type) (array_type) (pointer_type)
  (channel_type) (generic_type)
]) @def.type

(type_alias name: (_) @name) @def.type

(method_elem name: (_) @name) @def.method

(method_spec name: (_) @name) @def.method

(type_spec type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base)))) @based

(call_expression function: [(identifier) (selector_expression)] @call)

(call_expression function: (parenthesized_expression [(identifier) (selector_expression)] @call))

(call_expression function: (index_expression operand: [(identifier) (selector_expression)] @call))

(type_conversion_expression type: (generic_type type: (_) @call))

(type_conversion_expression type: (parenthesized_type (generic_type type: (_) @call)))

(import_spec) @import
"""

RUST = """
(function_item name: (_) @name body: (_) @body) @def.function

(function_signature_item name: (_) @name) @def.function

(struct_item name: (_) @name) @def.struct

(enum_item name: (_) @name body: (_) @body) @def.enum

(union_item name: (_) @name body: (_) @body) @def.union

(trait_item name: (_) @name body: (_) @body) @def.trait

(type_item name: (_) @name) @def.type

(mod_item name: (_) @name body: (_) @body) @def.module

(macro_definition name: (_) @name) @def.macro

(impl_item type: (_) @name body: (_) @body) @scope

(impl_item trait: (_) @base) @based

(trait_item bounds: (_) @base) @based

(call_expression function: [(identifier) (field_expression) (scoped_identifier)] @call)

(call_expression function: (generic_function function: (_) @call))

(macro_invocation macro: (_) @call)

(use_declaration) @import

(mod_item name: (_) !body) @import
"""

JAVA = """
(class_declaration name: (_) @name body: (_) @body) @def.class

(interface_declaration name: (_) @name body: (_) @body) @def.interface

(enum_declaration name: (_) @name body: (_) @body) @def.enum

(record_declaration name: (_) @name body: (_) @body) @def.record

(annotation_type_declaration name: (_) @name body: (_) @body) @def.annotation

(method_declaration name: (_) @name body: (_) @body) @def.method

(method_declaration name: (_) @name !body) @def.method

(constructor_declaration name: (_) @name body: (_) @body) @def.constructor

(class_declaration superclass: (_) @base) @based

(class_declaration interfaces: (_) @base) @based

(interface_declaration (extends_interfaces) @base) @based

(record_declaration interfaces: (_) @base) @based

(enum_declaration interfaces: (_) @base) @based

(method_invocation) @call

(object_creation_expression type: (_) @call)

(import_declaration) @import
"""

_C = """
(function_definition body: (_) @body) @def.function

(declaration declarator: (function_declarator)) @def.prototype

(declaration declarator: (pointer_declarator declarator: (function_declarator))) @def.prototype

(struct_specifier name: (_) @name body: (_) @body) @def.struct

(union_specifier name: (_) @name body: (_) @body) @def.union

(enum_specifier name: (_) @name body: (_) @body) @def.enum

(type_definition declarator: (type_identifier) @name) @def.type

(preproc_function_def name: (_) @name) @def.macro

(call_expression function: [(identifier) (field_expression)] @call)

(preproc_include) @import
"""

C = _C

CPP = (
    _C
    + """
(class_specifier name: (_) @name body: (_) @body) @def.class

(class_specifier (base_class_clause) @base) @based

(struct_specifier (base_class_clause) @base) @based

(namespace_definition name: (_) @name body: (_) @body) @def.namespace

(field_declaration declarator: (function_declarator)) @def.method

(field_declaration declarator: (pointer_declarator declarator: (function_declarator))) @def.method

(field_declaration declarator: (reference_declarator (function_declarator))) @def.method

(alias_declaration name: (_) @name) @def.type

(call_expression function: [(qualified_identifier) (template_function)] @call)

(new_expression type: (_) @call)
"""
)

RUBY = """
(method name: (_) @name) @def.method

(singleton_method name: (_) @name) @def.method

(class name: (_) @name) @def.class

(module name: (_) @name) @def.module

(class superclass: (_) @base) @based

(call) @call
"""
