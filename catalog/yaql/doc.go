// Package yaql is the query language YAQL: Parse makes an Expression of a text, an Expression is evaluated over data in a Scope.
//
// The language is that of YAQL 3 with the type operators of MuranoPL ("is", ":Name", "prefix:Name"). What an expression may call is
// a table (Functions) that is put together by value and never changes; what it may cost is limited (Limits), and evaluation ends
// with its context.
//
// Values are nil, bool, int64, float64, string, []any, *Dict, *Set, Seq (a lazy sequence), *Regex, time.Time, time.Duration (a time
// span), *Lambda, and whatever else a host puts in, which only the host's Dialect can look into. Data may also hold map[string]any
// and the other Go integers. No value is ever changed: functions make new ones. Integers have 64 bits; where Python would go on with
// more there is an error.
package yaql
