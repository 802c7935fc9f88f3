// Package yaql is the query language YAQL: Parse makes an Expression from a text, an Expression is evaluated over data in a Scope.
//
// The language is that of YAQL 3 with the type operators of MuranoPL ("is", ":Name", "prefix:Name"). The functions of an expression are a table
// (Functions) that is combined by value and never changes. Its cost is limited (Limits), and evaluation ends with its context.
//
// Values are nil, bool, int64, float64, string, []any, *Dict, *Set, Seq (a lazy sequence), *Regex, time.Time, time.Duration (a time span), *Lambda, and
// the host's own types, which only the host's Dialect can read. Data may also hold map[string]any and the other Go integers. No value is ever changed:
// functions make new ones. Integers have 64 bits; where Python would continue with more there is an error.
package yaql
