// Package muranopl is the language in which applications say what they are: classes with properties, contracts and methods, and
// models of objects of these classes.
//
// The way through the package: Classes reads class documents of packages; Load makes objects of a model and says everything that is
// wrong with it; an Interpreter invokes methods of objects; Save makes a model of objects again.
//
// Values of properties, arguments and results are nil, bool, int64, float64, string, []any, map[string]any and *Object. Lists and
// maps that were given away are not changed any more: a change makes a new one.
//
// The rules are those of MuranoPL 1.0 to 1.4 as OpenStack Murano 2023.2 runs it.
package muranopl
