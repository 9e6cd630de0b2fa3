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
