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
