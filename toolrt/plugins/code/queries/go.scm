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
