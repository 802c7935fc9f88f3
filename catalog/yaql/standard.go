package yaql

import (
	"slices"
	"sync"
)

// Standard is YAQL's own library.
func Standard() *Functions { return standard() }

// Legacy is the library as packages of format 1.0 and 1.1 and forms see it: functions are methods too, and more.
func Legacy() *Functions { return legacy() }

// Built once: a table does not change.
var (
	standard = sync.OnceValue(func() *Functions {
		functions := NewFunctions(slices.Concat(
			logicFunctions(), mathFunctions(), stringFunctions(), regexFunctions(), collectionFunctions(), queryFunctions(),
			timeFunctions())...)
		functions.plain = true
		return functions
	})
	legacy = sync.OnceValue(func() *Functions { return standard().Extend(legacyFunctions()...).Lenient() })
)
