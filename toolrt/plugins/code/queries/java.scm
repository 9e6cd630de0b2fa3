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
