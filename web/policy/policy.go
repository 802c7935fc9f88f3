// Package policy decides about rights: named rules with Murano's names and defaults, which a file in the syntax of oslo.policy may override
// (https://docs.openstack.org/oslo.policy/latest/admin/policy-yaml-file.html).
package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/identity"
)

// contextIsAdmin is the rule for administrators.
const contextIsAdmin = "context_is_admin"

// The common terms of the rules below.
const (
	readers = "rule:reader"
	members = "rule:member"
	admins  = "rule:admin_api"
)

// defaults are Murano's rules. Rules that Murano checks and has forgotten to register, such as get_schema, fall to its default, and so they do here.
var defaults = map[string]string{
	contextIsAdmin: "role:admin",
	"admin_api":    "is_admin:True",
	"default":      "",

	// Keystone's roles of today. Every authenticated caller reads. Every caller writes, except with the role reader only: older clouds give other roles,
	// such as _member_.
	"reader":  "rule:default",
	"member":  "rule:default and not read_only:True",
	"manager": "role:manager or rule:admin_api",
	"admin":   "rule:admin_api",

	"list_environments":                 readers,
	"list_environments_all_tenants":     admins,
	"show_environment":                  readers,
	"update_environment":                members,
	"create_environment":                members,
	"delete_environment":                members,
	"list_deployments":                  readers,
	"list_deployments_all_environments": readers,
	"statuses_deployments":              readers,
	"execute_action":                    members,

	"get_package":           readers,
	"upload_package":        members,
	"modify_package":        members,
	"publicize_package":     admins,
	"manage_public_package": members,
	"delete_package":        members,
	"download_package":      readers,
	"get_category":          readers,
	"add_category":          admins,
	"delete_category":       admins,

	"list_env_templates":          readers,
	"create_env_template":         members,
	"show_env_template":           readers,
	"update_env_template":         members,
	"delete_env_template":         members,
	"clone_env_template":          members,
	"update_service_env_template": members,

	"get_schema":                readers,
	"get_statistics":            readers,
	"get_instance_statistics":   readers,
	"get_aggregated_statistics": readers,
	"mark_image":                admins,
	"remove_image_metadata":     admins,

	// Rules that Murano does not have.
	"list_audit_events":     admins,
	"get_kubeconfig":        members, // with all rights in the cluster
	"get_editor_kubeconfig": members,
	"get_reader_kubeconfig": readers,
	"get_pod_log":           readers,
	"update_workload":       members,
	"ask_cloud":             readers,
	"delegate_environment":  members,
	"revoke_any_delegation": "rule:manager",
	"get_quotas":            readers, // of the own project; administrators of any
	"set_quotas":            admins,
	"list_projects":         admins,
	"examine_cloud":         admins,
	"get_profiles":          admins,  // of the server's process, where its setting allows it
	"get_project_role":      readers, // of the own project; administrators of any
	"set_project_role":      "rule:manager",
}

// Policy is a set of rules that refer to each other without gaps and circles. It does not change.
type Policy struct {
	rules map[string]check
}

// New returns Murano's rules.
func New() *Policy {
	policy, err := build(nil)
	if err != nil {
		panic(err) // the rules above are at fault; a test makes them
	}
	return policy
}

// Load returns Murano's rules, overridden by a YAML file: a mapping of names to texts. Unknown are the names that no call uses; a misspelt one is likely
// among them. An error names file and line.
func Load(path string) (policy *Policy, unknown []string, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("the policy file %s is not there", path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the policy file: %w", err)
	}
	overrides, err := read(data)
	if err == nil {
		policy, err = build(overrides)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("policy file %s: %w", path, err)
	}
	return policy, policy.unasked(overrides), nil
}

// text is a rule in a file.
type text struct {
	content string
	line    int // 0 for a default
}

// read reads a policy file. Values are texts, or lists of the older form: the outer one's items are alternatives, an inner one's
// hold together.
func read(data []byte) (map[string]text, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("it is no YAML: %w", err)
	}
	overrides := map[string]text{}
	if len(document.Content) == 0 {
		return overrides, nil
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return overrides, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it should be a mapping of rules' names to their texts", root.Line)
	}
	for i := 0; i < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		if first, twice := overrides[name.Value]; twice {
			return nil, fmt.Errorf("line %d: the rule %q is there already, in line %d", name.Line, name.Value, first.line)
		}
		content, err := ruleText(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: the rule %q: %w", value.Line, name.Value, err)
		}
		overrides[name.Value] = text{content: content, line: value.Line}
	}
	return overrides, nil
}

func ruleText(value *yaml.Node) (string, error) {
	if value.Kind == yaml.ScalarNode && (value.Tag == "!!str" || value.Tag == "!!null") {
		if value.Tag == "!!null" {
			return "", nil
		}
		return value.Value, nil
	}
	if value.Kind != yaml.SequenceNode {
		return "", errors.New(`a rule is a text such as "role:admin or project_id:%(project_id)s"`)
	}
	var alternatives []string
	for _, item := range value.Content {
		if item.Kind == yaml.ScalarNode {
			alternatives = append(alternatives, item.Value)
			continue
		}
		var together []string
		for _, one := range item.Content {
			if one.Kind != yaml.ScalarNode {
				return "", errors.New("a rule that is a list holds texts, and lists of texts")
			}
			together = append(together, one.Value)
		}
		if len(together) > 0 {
			alternatives = append(alternatives, "("+strings.Join(together, " and ")+")")
		}
	}
	return strings.Join(alternatives, " or "), nil
}

// build parses defaults and overrides and checks that they refer to each other without gaps and circles.
func build(overrides map[string]text) (*Policy, error) {
	texts := map[string]text{}
	for name, content := range defaults {
		texts[name] = text{content: content}
	}
	maps.Copy(texts, overrides)
	policy := &Policy{rules: map[string]check{}}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		parsed, err := parse(texts[name].content)
		if err != nil {
			return nil, texts[name].fail(name, err)
		}
		policy.rules[name] = parsed
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := policy.follow(name, nil); err != nil {
			return nil, texts[name].fail(name, err)
		}
	}
	return policy, nil
}

func (t text) fail(name string, err error) error {
	if t.line == 0 {
		return fmt.Errorf("the rule %q: %w", name, err)
	}
	return fmt.Errorf("line %d: the rule %q: %w", t.line, name, err)
}

// follow visits all rules that this one refers to; on is the path to this one.
func (p *Policy) follow(name string, on []string) error {
	if slices.Contains(on, name) {
		return fmt.Errorf("it refers to itself: %s", strings.Join(append(on, name), ", "))
	}
	for _, other := range references(p.rules[name]) {
		if _, there := p.rules[other]; !there {
			return fmt.Errorf("it refers to the rule %q, which there is none of", other)
		}
		if err := p.follow(other, append(slices.Clone(on), name)); err != nil {
			return err
		}
	}
	return nil
}

// unasked lists the overrides that are neither Murano's nor referred to.
func (p *Policy) unasked(overrides map[string]text) []string {
	asked := map[string]bool{}
	for name := range defaults {
		asked[name] = true
	}
	for _, rule := range p.rules {
		for _, other := range references(rule) {
			asked[other] = true
		}
	}
	var names []string
	for name := range overrides {
		if !asked[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Known reports whether there is a rule of this name.
func (p *Policy) Known(name string) bool {
	_, there := p.rules[name]
	return there
}

// Allows reports whether the rule permits the caller. A target's attributes replace %(name)s in rules; project_id and user_id are the caller's own if the
// target has none. An unknown rule permits no caller.
func (p *Policy) Allows(name string, caller identity.Caller, target map[string]string) bool {
	rule, there := p.rules[name]
	return there && rule.holds(question{policy: p, caller: caller, target: target})
}

// Apply returns the caller with the policy's decision about its roles and rights.
func (p *Policy) Apply(caller identity.Caller) identity.Caller {
	caller.Admin = p.Allows(contextIsAdmin, caller, nil)
	return caller.Under(func(rule string) bool { return p.Allows(rule, caller, nil) })
}

// Passed lists the rules that the caller passes, if they depend on the caller only, in order.
func (p *Policy) Passed(caller identity.Caller) []string {
	caller = p.Apply(caller)
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(p.rules)) {
		if p.Allows(name, caller, nil) {
			names = append(names, name)
		}
	}
	return names
}
