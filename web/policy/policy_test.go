package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/policy"
)

var (
	admin  = identity.Caller{UserID: "u-admin", ProjectID: "p-admin", Roles: []string{"Admin"}}
	member = identity.Caller{UserID: "u-member", ProjectID: "p-demo", ProjectName: "demo", UserDomainID: "default", Roles: []string{"member", "reader"}}
)

func load(t *testing.T, content string) (*policy.Policy, []string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return policy.Load(path)
}

func TestMuranosRulesCountWithoutAFile(t *testing.T) {
	p := policy.New()
	require.True(t, p.Apply(admin).Admin)
	require.False(t, p.Apply(member).Admin)
	require.False(t, p.Apply(identity.Caller{Admin: true}).Admin, "only roles make an administrator")
	for _, rule := range []string{"list_environments", "upload_package", "manage_public_package", "get_schema", "get_statistics", "update_service_env_template"} {
		require.True(t, p.Apply(member).May(rule), rule)
	}
	for _, rule := range []string{"list_environments_all_tenants", "publicize_package", "add_category", "delete_category", "mark_image"} {
		require.True(t, p.Apply(admin).May(rule), rule)
		require.False(t, p.Apply(member).May(rule), rule)
	}
	require.False(t, p.Apply(admin).May("no_such_rule"), "what is misspelt lets nobody through")
}

func TestOnlyWhoIsNothingButAReaderLosesWriting(t *testing.T) {
	p := policy.New()
	for _, c := range []struct {
		roles  []string
		writes bool
	}{
		{[]string{"reader"}, false}, {[]string{"Reader"}, false}, {[]string{"member", "reader"}, true}, {[]string{"manager", "member", "reader"}, true},
		{[]string{"admin"}, true}, {[]string{"_member_"}, true}, {[]string{"reader", "catalog-editor"}, true}, {nil, true},
	} {
		caller := p.Apply(identity.Caller{Roles: c.roles})
		require.Equal(t, c.writes, caller.May("update_environment"), "%v", c.roles)
		require.Equal(t, c.writes, caller.May("get_kubeconfig"), "%v", c.roles)
		require.True(t, caller.May("show_environment"), "%v", c.roles)
	}
	require.True(t, p.Apply(identity.Caller{Roles: []string{"manager", "member"}}).May("revoke_any_delegation"))
	require.False(t, p.Apply(member).May("revoke_any_delegation"))
	strict, _, err := load(t, "member: role:member or rule:admin_api\n")
	require.NoError(t, err)
	require.False(t, strict.Apply(identity.Caller{Roles: []string{"_member_"}}).May("update_environment"))
}

func TestChecksMeanWhatOsloPolicySays(t *testing.T) {
	target := map[string]string{"environment_id": "e1", "role": "Reader"}
	for rule, want := range map[string]bool{
		``: true, `@`: true, `!`: false,
		`role:member`: true, `role:MEMBER`: true, `role:admin`: false, `role:%(role)s`: true, `role:%(nothing)s`: false,
		`is_admin:True`: false, `is_admin:False`: true, `is_admin:true`: false,
		`project_id:p-demo`: true, `tenant:p-demo`: true, `project_id:p-admin`: false, `project_name:demo`: true, `user_domain_id:default`: true,
		`project_id:%(project_id)s`: true, `user_id:%(user_id)s`: true, `user_id:%(environment_id)s`: false,
		`'e1':%(environment_id)s`: true, `"e2":%(environment_id)s`: false, `'a b:c':a`: false, `True:True`: true, `None:e1`: false,
		`not role:admin`: true, `not role:member`: false, `not not role:member`: true, `not (role:admin or role:member)`: false,
		`role:admin and role:member or role:reader`: true, `role:admin and (role:member or role:reader)`: false,
		`role:reader or role:member and role:admin`: true, `not role:admin and role:member`: true, `NOT role:admin AND role:member`: true,
		`((role:member))`: true, `( role:member )`: true, `rule:mine`: true, `rule:admin_api or rule:mine`: true, `rule:admin_api`: false,
	} {
		p, _, err := load(t, "mine: role:member\nget_package: "+quote(rule)+"\n")
		require.NoError(t, err, rule)
		require.Equal(t, want, p.Allows("get_package", p.Apply(member), target), rule)
	}
}

func quote(rule string) string {
	quoted := "'"
	for _, r := range rule {
		if r == '\'' {
			quoted += "'"
		}
		quoted += string(r)
	}
	return quoted + "'"
}

func TestListsAreTheOlderFormOfRules(t *testing.T) {
	p, _, err := load(t, "add_category: [[role:admin], [role:member, role:reader]]\ndelete_category: [role:admin, [role:member, role:writer]]\nupload_package: []\nmodify_package:\n")
	require.NoError(t, err)
	require.True(t, p.Apply(member).May("add_category"))
	require.False(t, p.Apply(member).May("delete_category"))
	require.True(t, p.Apply(member).May("upload_package"))
	require.True(t, p.Apply(member).May("modify_package"))
}

func TestAFileOverridesSingleRules(t *testing.T) {
	p, unknown, err := load(t, "context_is_admin: role:boss\ndefault: role:member\nmine: role:reader\nshow_environment: rule:mine\nupload_pakage: '!'\n")
	require.NoError(t, err)
	require.Equal(t, []string{"upload_pakage"}, unknown)
	require.False(t, p.Apply(admin).Admin)
	boss := p.Apply(identity.Caller{Roles: []string{"boss"}})
	require.True(t, boss.Admin)
	require.True(t, boss.May("add_category"), "is_admin follows context_is_admin")
	require.False(t, boss.May("upload_package"), "rules that were everybody's follow default")
	require.True(t, p.Apply(member).May("upload_package"))

	empty, unknown, err := load(t, "# nothing\n")
	require.NoError(t, err)
	require.Empty(t, unknown)
	require.True(t, empty.Apply(member).May("upload_package"))
}

func TestAWrongFileIsRefusedWithTheLine(t *testing.T) {
	for content, want := range map[string]string{
		"a: role:x\nb: role:admin or\n":     `line 2: the rule "b": at its end: a check such as role:admin`,
		"b: (role:admin\n":                  `line 1: the rule "b": at its end: a parenthesis is not closed`,
		"\n\nb: role:admin role:member\n":   `line 3: the rule "b": character 12, "role:member": "and" or "or"`,
		"b: role:admin)\n":                  `character 11, ")"`,
		"b: admin\n":                        `character 1, "admin": a check has the form kind:value`,
		"b: 'role:'\n":                      `nothing after the colon`,
		"b: \"'x:%(a)s\"\n":                 `its quote is not closed`,
		"b: 'and role:admin'\n":             `character 1, "and"`,
		"b: http://example.org/check\n":     `remote checks`,
		"b: colour:red\n":                   `nothing of the caller is called "colour"`,
		"b: rule:c\n":                       `line 1: the rule "b": it refers to the rule "c", which there is none of`,
		"b: rule:c\nc: not rule:b\n":        `it refers to itself: b, c, b`,
		"default: rule:list_environments\n": `it refers to itself`,
		"b: role:x\nb: role:y\n":            `line 2`,
		"b: {role: x}\n":                    `line 1: the rule "b": a rule is a text`,
		"b: 5\n":                            `a rule is a text`,
		"b: [[[role:x]]]\n":                 `line 1`,
		"- role:x\n":                        `line 1: it should be a mapping`,
		"b: [\n":                            `it is no YAML: yaml: line`,
	} {
		_, _, err := load(t, content)
		require.ErrorContains(t, err, want, content)
		require.ErrorContains(t, err, "policy.yaml", content)
	}
	_, _, err := policy.Load(filepath.Join(t.TempDir(), "nope.yaml"))
	require.ErrorContains(t, err, "nope.yaml is not there")
}

func TestNoTextMakesTheParserFall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"(", ")", " ", "and", "or", "not", "role:member", "'a'", "\"", "%(x)s", ":", "@", "!", "rule:default", "é"}))
		content := ""
		for _, word := range words.Draw(rt, "words") {
			content += word
		}
		require.NoError(t, os.WriteFile(path, []byte("mine: "+quote(content)+"\n"), 0o600))
		if p, _, err := policy.Load(path); err == nil {
			p.Apply(member).May("mine")
		}
	})
}

func TestWhoCallsIsToldWhatThePolicyLetsThemDo(t *testing.T) {
	p := policy.New()
	reader := p.Passed(identity.Caller{Roles: []string{"reader"}})
	require.Contains(t, reader, "show_environment")
	require.NotContains(t, reader, "update_environment")
	require.NotContains(t, reader, "list_audit_events")
	require.Contains(t, p.Passed(identity.Caller{Roles: []string{"admin"}}), "list_audit_events")
	require.IsIncreasing(t, reader)
}
