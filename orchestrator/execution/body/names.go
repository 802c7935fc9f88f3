package body

import (
	"fmt"
	"slices"
)

// Names finds certain mistakes of a body with names: it calls a name that is neither a script nor a function. Where whole is true, it also finds
// parameters of args that do not exist. A body that cannot be read has none.
func Names(source string, scripts, parameters []string, whole bool) []error {
	body, err := Parse(source)
	if err != nil {
		return nil
	}
	tokens, _ := tokenise(source) // Parse has read them
	isOperator := func(at int, text string) bool {
		return at >= 0 && at < len(tokens) && tokens[at].kind == operator && tokens[at].text == text
	}
	var found []error
	for i, t := range tokens {
		if t.kind != nameToken {
			continue
		}
		switch attribute := isOperator(i-1, "."); {
		case attribute && i >= 2 && tokens[i-2].kind == nameToken && tokens[i-2].text == "args" && !isOperator(i-3, ".") && !isOperator(i+1, "("):
			if whole && !slices.Contains(parameters, t.text) {
				found = append(found, &Error{t.line, "AttributeError", fmt.Sprintf("args has no %s: the Parameters of the plan do not name it", t.text)})
			}
		case !attribute && isOperator(i+1, "(") && !slices.Contains(scripts, t.text) && !body.binds(t.text, tokens):
			if _, known := builtin(t.text); !known && !slices.Contains(keywords, t.text) {
				found = append(found, &Error{t.line, "NameError", fmt.Sprintf("%s is neither a script of the plan nor a function", t.text)})
			}
		}
	}
	return found
}

// binds is true if the body may give the name a value: it occurs other than in a call.
func (b *Body) binds(name string, tokens []token) bool {
	calls := 0
	for i, t := range tokens {
		if t.kind == nameToken && t.text == name && tokens[i+1].kind == operator && tokens[i+1].text == "(" {
			calls++
		}
	}
	return b.words[name] > calls
}
