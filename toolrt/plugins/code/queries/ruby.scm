(method name: (_) @name) @def.method

(singleton_method name: (_) @name) @def.method

(class name: (_) @name) @def.class

(module name: (_) @name) @def.module

(class superclass: (_) @base) @based

(call) @call
