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
