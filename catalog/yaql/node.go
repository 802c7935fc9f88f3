package yaql

// Node is a node of a parsed expression. Nodes do not change.
type Node interface {
	// Offset is where the node's own token begins in the source, in bytes.
	Offset() int
}

type at int

func (a at) Offset() int { return int(a) }

// Literal is a number, a quoted string, true, false or null.
type Literal struct {
	at
	Value any
}

// Keyword is a bare word: a name where a name is wanted, else a string.
type Keyword struct {
	at
	Name string
}

// Variable is $ (name ""), $1 or $name.
type Variable struct {
	at
	Name string

	place int
}

// Call is a function call, or, on the right of a dot, a method call. An argument that was left out, as in f(,1), is nil.
type Call struct {
	at
	Name string
	Args []Node
}

// Apply is a call of a value: lambda($ + 1)(2).
type Apply struct {
	at
	Callee Node
	Args   []Node
}

// Mapping is "key => value" among arguments.
type Mapping struct {
	at
	Key, Value Node

	tuple bool // of the old grammar, in which no argument has a name
}

// Binary is an operator with two operands; ".", "?.", "->", "and", "or", "is" and ":" are among them.
type Binary struct {
	at
	Operator    string
	Left, Right Node
}

// Unary is a prefix operator: "+", "-", "not" or ":".
type Unary struct {
	at
	Operator string
	Operand  Node
}

// Index is target[args].
type Index struct {
	at
	Target Node
	Args   []Node
}

// List is [items].
type List struct {
	at
	Items []Node
}

// Map is {key => value, …}; its items are Mappings.
type Map struct {
	at
	Items []Node
}

// Inspect visits a node and all nodes in it. An argument that was left out is not visited.
func Inspect(node Node, visit func(Node)) {
	if node == nil {
		return
	}
	visit(node)
	var parts []Node
	switch n := node.(type) {
	case *Call:
		parts = n.Args
	case *Apply:
		parts = append([]Node{n.Callee}, n.Args...)
	case *Mapping:
		parts = []Node{n.Key, n.Value}
	case *Binary:
		parts = []Node{n.Left, n.Right}
	case *Unary:
		parts = []Node{n.Operand}
	case *Index:
		parts = append([]Node{n.Target}, n.Args...)
	case *List:
		parts = n.Items
	case *Map:
		parts = n.Items
	}
	for _, part := range parts {
		Inspect(part, visit)
	}
}
