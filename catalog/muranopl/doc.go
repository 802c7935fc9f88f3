// Package muranopl is the language in which applications describe themselves: classes with properties, contracts and methods, and models of objects of
// these classes.
//
// Classes reads class documents of packages. Load makes objects of a model and reports all faults of it. An Interpreter invokes methods of objects. Save
// makes a model of objects again.
//
// Values of properties, arguments and results are nil, bool, int64, float64, string, []any, map[string]any and *Object. Lists and maps that were passed on
// are never changed: a change makes a new one.
//
// The rules are those of MuranoPL 1.0 to 1.4 as OpenStack Murano 2023.2 runs it.
package muranopl
