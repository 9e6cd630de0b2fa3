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
