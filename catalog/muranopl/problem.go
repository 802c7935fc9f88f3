package muranopl

import "strings"

// Problem is one thing that is wrong with a model, for the person who wrote the model.
type Problem struct {
	// Path leads from the model's root to the place, like "services[0].minionNodes[1].instance.flavor"; "" is the root itself.
	Path string
	// Class is whose rule it is: "com.example.Node.flavor" for a property, "com.example.Node" for a whole object, "" when the
	// class is what is not known.
	Class string
	// Wanted says what is wanted there and, as far as it is known, what was found and what to do.
	Wanted string
	// Name and Message are those of the exception that Murano has for it; "" says that it is a contract that was violated, in words of
	// our own.
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
