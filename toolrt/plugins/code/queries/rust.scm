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
