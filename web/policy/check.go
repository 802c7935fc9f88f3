package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/identity"
)

// question is the input of a check.
type question struct {
	policy *Policy
	caller identity.Caller
	target map[string]string
}

// check is a parsed rule, or a part of one.
type check interface {
	holds(question) bool
}

type (
	constant   bool
	allOf      []check
	anyOf      []check
	negation   struct{ of check }
	reference  string                       // rule:NAME
	roleCheck  string                       // role:NAME, may hold %(attribute)s
	comparison struct{ kind, match string } // KIND:MATCH, or 'LITERAL':MATCH
)

func (c constant) holds(question) bool { return bool(c) }

func (c allOf) holds(q question) bool {
	return !slices.ContainsFunc(c, func(part check) bool { return !part.holds(q) })
}

func (c anyOf) holds(q question) bool {
	return slices.ContainsFunc(c, func(part check) bool { return part.holds(q) })
}

func (c negation) holds(q question) bool { return !c.of.holds(q) }

func (c reference) holds(q question) bool { return q.policy.rules[string(c)].holds(q) }

func (c roleCheck) holds(q question) bool {
	wanted, ok := q.fill(string(c))
	return ok && slices.ContainsFunc(q.caller.Roles, func(role string) bool { return strings.EqualFold(role, wanted) })
}

// holds compares as oslo.policy's GenericCheck does: the match, filled in, with the caller's attribute or a literal.
func (c comparison) holds(q question) bool {
	wanted, ok := q.fill(c.match)
	if !ok {
		return false
	}
	if literal, isLiteral := literalOf(c.kind); isLiteral {
		return literal == wanted
	}
	have, ok := q.attribute(c.kind)
	return ok && have == wanted
}

// attribute is an attribute of the caller, with oslo.context's names; read_only, for a caller with the role reader and no other, is ours.
func (q question) attribute(name string) (string, bool) {
	switch name {
	case "user_id", "user":
		return q.caller.UserID, true
	case "project_id", "tenant", "tenant_id":
		return q.caller.ProjectID, true
	case "project_name":
		return q.caller.ProjectName, true
	case "user_domain_id":
		return q.caller.UserDomainID, true
	case "project_domain_id":
		return q.caller.ProjectDomainID, true
	case "is_admin":
		return truth(q.caller.Admin), true
	case "read_only":
		other := func(role string) bool { return !strings.EqualFold(role, readerRole) }
		return truth(len(q.caller.Roles) > 0 && !slices.ContainsFunc(q.caller.Roles, other)), true
	}
	return "", false
}

// readerRole is Keystone's role of users who may only read (https://docs.openstack.org/keystone/latest/admin/service-api-protection.html).
const readerRole = "reader"

// truth is how Python writes it.
func truth(value bool) string {
	if value {
		return "True"
	}
	return "False"
}

var placeholder = regexp.MustCompile(`%\(([^)]*)\)s`)

// fill puts the target's attributes in the place of %(name)s; false when the target has not all of them.
func (q question) fill(match string) (string, bool) {
	if !strings.Contains(match, "%(") {
		return match, true
	}
	complete := true
	filled := placeholder.ReplaceAllStringFunc(match, func(found string) string {
		name := found[2 : len(found)-2]
		value, there := q.target[name]
		if !there && (name == "project_id" || name == "user_id") {
			value, there = q.attribute(name)
		}
		complete = complete && there
		return value
	})
	return filled, complete
}

// literalOf reads oslo.policy's literals of the left side: a quoted text, a number, True, False or None.
func literalOf(kind string) (string, bool) {
	if len(kind) >= 2 && (kind[0] == '\'' || kind[0] == '"') && kind[len(kind)-1] == kind[0] {
		return kind[1 : len(kind)-1], true
	}
	if _, err := strconv.ParseFloat(kind, 64); err == nil || slices.Contains([]string{"True", "False", "None"}, kind) {
		return kind, true
	}
	return "", false
}

// references lists the names of the rules that a check refers to.
func references(c check) []string {
	var names []string
	switch c := c.(type) {
	case reference:
		names = append(names, string(c))
	case negation:
		names = references(c.of)
	case allOf:
		for _, part := range c {
			names = append(names, references(part)...)
		}
	case anyOf:
		for _, part := range c {
			names = append(names, references(part)...)
		}
	}
	return names
}

// parser reads a rule's text: "or" binds weakest, then "and", then "not"; parentheses group.
type parser struct {
	tokens []token
	next   int
}

type token struct {
	text   string
	column int // of its first character, from 1
}

func parse(content string) (check, error) {
	tokens, err := split(content)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return constant(true), nil // as in oslo.policy, the empty rule permits all
	}
	p := &parser{tokens: tokens}
	parsed, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.next < len(tokens) {
		return nil, tokens[p.next].wrong("\"and\" or \"or\" should stand before it")
	}
	return parsed, nil
}

func (t token) wrong(why string) error {
	if t.text == "" {
		return fmt.Errorf("at its end: %s", why)
	}
	return fmt.Errorf("character %d, %q: %s", t.column, t.text, why)
}

// split cuts a text into parentheses and words; quotes hold a word together, and parentheses inside a word, as in %(project_id)s, belong to it.
func split(content string) ([]token, error) {
	var tokens []token
	runes := []rune(content)
	for i := 0; i < len(runes); {
		switch r := runes[i]; {
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			i++
		case r == '(' || r == ')':
			tokens = append(tokens, token{string(r), i + 1})
			i++
		default:
			start, depth, quote := i, 0, rune(0)
			for ; i < len(runes); i++ {
				r := runes[i]
				if quote != 0 {
					if r == quote {
						quote = 0
					}
					continue
				}
				if r == '\'' || r == '"' {
					quote = r
				} else if r == '(' {
					depth++
				} else if r == ')' {
					if depth == 0 {
						break
					}
					depth--
				} else if strings.ContainsRune(" \t\n\r", r) {
					break
				}
			}
			word := token{string(runes[start:i]), start + 1}
			if quote != 0 {
				return nil, word.wrong("its quote is not closed")
			}
			tokens = append(tokens, word)
		}
	}
	return tokens, nil
}

// peek returns the next token; the zero token at the end.
func (p *parser) peek() token {
	if p.next < len(p.tokens) {
		return p.tokens[p.next]
	}
	return token{}
}

func (p *parser) takes(word string) bool {
	if strings.ToLower(p.peek().text) != word {
		return false
	}
	p.next++
	return true
}

func (p *parser) alternatives() (check, error) {
	first, err := p.conjunction()
	parts := anyOf{first}
	for err == nil && p.takes("or") {
		var part check
		part, err = p.conjunction()
		parts = append(parts, part)
	}
	if err != nil || len(parts) > 1 {
		return parts, err
	}
	return first, nil
}

func (p *parser) conjunction() (check, error) {
	first, err := p.single()
	parts := allOf{first}
	for err == nil && p.takes("and") {
		var part check
		part, err = p.single()
		parts = append(parts, part)
	}
	if err != nil || len(parts) > 1 {
		return parts, err
	}
	return first, nil
}

func (p *parser) single() (check, error) {
	if p.takes("not") {
		of, err := p.single()
		return negation{of}, err
	}
	if p.takes("(") {
		inner, err := p.alternatives()
		if err == nil && !p.takes(")") {
			err = p.peek().wrong("a parenthesis is not closed")
		}
		return inner, err
	}
	word := p.peek()
	if word.text == "" || word.text == ")" || slices.Contains([]string{"and", "or"}, strings.ToLower(word.text)) {
		return nil, word.wrong("a check such as role:admin should stand here")
	}
	p.next++
	return word.check()
}

func (t token) check() (check, error) {
	switch t.text {
	case "@":
		return constant(true), nil
	case "!":
		return constant(false), nil
	}
	kind, match, found := strings.Cut(t.text, ":")
	if quote := t.text[0]; quote == '\'' || quote == '"' { // a literal may hold a colon
		end := strings.IndexByte(t.text[1:], quote) + 2
		kind = t.text[:end]
		match, found = strings.CutPrefix(t.text[end:], ":")
	}
	switch {
	case !found:
		return nil, t.wrong("a check has the form kind:value, such as role:admin, rule:admin_api or project_id:%(project_id)s")
	case match == "":
		return nil, t.wrong("there is nothing after the colon")
	case kind == "http" || kind == "https":
		return nil, t.wrong("remote checks (http:, https:) are not made")
	case kind == "rule":
		return reference(match), nil
	case kind == "role":
		return roleCheck(match), nil
	}
	_, isLiteral := literalOf(kind)
	if _, known := (question{}).attribute(kind); !known && !isLiteral {
		return nil, t.wrong(fmt.Sprintf("nothing of the caller is called %q: there are role, rule, is_admin, read_only, user_id, project_id, project_name, "+
			"user_domain_id and project_domain_id, and 'literals'", kind))
	}
	return comparison{kind, match}, nil
}
