package haproxy

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// HAProxy sends copies of requests itself, by an action in Lua. A copy goes through a frontend of the same HAProxy to a backend of its own, whose answer is
// dropped. So it has balancing, checks and changes of servers as all others, and no other process is in the path of a request.

//go:embed mirrors.lua
var mirrorsScript []byte

const (
	mirrorAction = "burano-mirror"
	mirrorPrefix = "mirror-"
	// The content of a request may be awaited so long, and has so many bytes, to be copied.
	contentPatience = 50 // milliseconds
	longestContent  = 8192
	copyPatience    = 10_000 // milliseconds
)

// mirrorSection is the frontend of copies for a section.
func mirrorSection(section string) string { return mirrorPrefix + section }

func mirrorTarget(m route.Mirror) target {
	return target{pool: m.Target.Pool, filters: m.Target.Filters, mirrored: true}
}

// mirrorRules send copies of requests.
func mirrorRules(mirrors *route.Mirrors) (rules models.HTTPRequestRules) {
	if mirrors == nil {
		return nil
	}
	patience := int64(contentPatience)
	rules = append(rules, &models.HTTPRequestRule{
		Type: models.HTTPRequestRuleTypeWaitDashForDashBody, WaitTime: &patience, Cond: "if",
		CondTest: fmt.Sprintf("{ req.hdr(content-length) -m found } { req.hdr(content-length) -m int le %d }", longestContent),
	})
	for _, one := range mirrors.To {
		rule := &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeLua, LuaAction: mirrorAction, LuaParams: socketOf(mirrorSection(mirrorTarget(one).section()))}
		if one.Part < one.Of {
			rule.Cond, rule.CondTest = "if", fmt.Sprintf("{ rand(%d) -m int lt %d }", one.Of, one.Part)
		}
		rules = append(rules, rule)
	}
	return rules
}

// mirror makes the frontend of a backend for copies, and drops its answers.
func (f *file) mirror(l listener, id string) error {
	section, nothing := mirrorSection(l.Section), int64(http.StatusNoContent)
	if err := f.client.ReplaceHTTPResponseRules("backend", l.Section, models.HTTPResponseRules{{Type: models.HTTPResponseRuleTypeReturn, ReturnStatusCode: &nothing}}, id, 0); err != nil {
		return err
	}
	frontend := &models.Frontend{FrontendBase: models.FrontendBase{Name: section, From: defaultsName, Mode: models.FrontendBaseModeHTTP, DefaultBackend: l.Section}}
	if err := f.frontend(frontend, id); err != nil {
		return err
	}
	return f.client.CreateBind("frontend", section, &models.Bind{BindParams: models.BindParams{Name: section}, Address: socketOf(section)}, id, 0)
}

const loadScript = "  lua-load "

// script is the file of the action, which never changes.
func (w webFiles) script() string {
	return filepath.Join(w.directory, fmt.Sprintf("mirrors-%.8x.lua", sha256.Sum256(mirrorsScript)))
}

// loadMirrors has a configuration load the action if it needs it.
func (f *file) loadMirrors(t *text) error {
	lines := slices.Collect(strings.Lines(t.head))
	t.head = strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, loadScript) }), "")
	if !t.mentions(" lua." + mirrorAction + " ") {
		return nil
	}
	if err := os.MkdirAll(f.web.directory, 0o700); err != nil {
		return err
	}
	if err := replace(f.web.script(), mirrorsScript); err != nil {
		return fmt.Errorf("write the action for copies of requests: %w", err)
	}
	t.head = strings.Replace(t.head, global, global+loadScript+f.web.script()+"\n", 1)
	return nil
}

// withoutMirrors leaves out the copies for targets that must not be asked.
func withoutMirrors(f *route.Filters, bad func(route.Target) bool) *route.Filters {
	if f == nil || f.Mirrors == nil || !slices.ContainsFunc(f.Mirrors.To, func(m route.Mirror) bool { return bad(m.Target) }) {
		return f
	}
	without := *f
	without.Mirrors = &route.Mirrors{To: slices.DeleteFunc(slices.Clone(f.Mirrors.To), func(m route.Mirror) bool { return bad(m.Target) })}
	if len(without.Mirrors.To) == 0 {
		without.Mirrors = nil
	}
	return &without
}
