package muranopl

import "strings"

// Problem is one thing that is wrong with a model, for the person who wrote the model.
type Problem struct {
	// Path leads from the model's root to the place, like "services[0].minionNodes[1].instance.flavor"; "" is the root itself.
	Path string
	// Class is the owner of the rule: "com.example.Node.flavor" for a property, "com.example.Node" for a whole object, "" when the class itself is
	// unknown.
	Class string
	// Wanted describes the required value and, if known, the found one and the remedy.
	Wanted string
	// Name and Message are those of Murano's exception for it; "" is a violated contract, in Burano's words.
	Name, Message string
}

// Exception is the problem as an exception, such as code in MuranoPL would meet it.
func (p Problem) Exception() *Exception {
	if p.Name == "" {
		return raised(ContractViolation, "%s", p.Error())
	}
	return raised(p.Name, "%s", p.Message)
}

// Error is the problem in one line.
func (p Problem) Error() string {
	var b strings.Builder
	if p.Path == "" {
		b.WriteString("the environment itself")
	} else {
		b.WriteString(p.Path)
	}
	b.WriteString(": ")
	if p.Class != "" {
		b.WriteString(p.Class)
		b.WriteString(" ")
	}
	b.WriteString(p.Wanted)
	return b.String()
}
