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
