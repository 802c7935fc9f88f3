package route

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
)

// BackendTLS is how backends are asked over TLS, and which certificate they show.
type BackendTLS struct {
	Authorities string `json:"authorities,omitempty"` // the name of the bundle that signs their certificates; "": the well-known ones of a gateway's system
	Host        string `json:"host"`                  // the name that is asked for, and that the certificate has
	Certificate string `json:"certificate,omitempty"` // namespace/name of the Secret with the certificate that the gateway shows; "": none
	// Unverified means that any certificate will do, as for Ingresses; Host may be empty then.
	Unverified bool `json:"unverified,omitempty"`
	// Pool is the pool, in etcd alone (see Target.MarshalJSON).
	Pool string `json:"pool,omitempty"`
}

var secretForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func (b *BackendTLS) validate() error {
	if b == nil {
		return nil
	}
	if b.Authorities != "" {
		if err := validAuthorities(b.Authorities); err != nil {
			return err
		}
	}
	if b.Certificate != "" && !secretForm.MatchString(b.Certificate) {
		return fmt.Errorf("%.100q is not a Secret", b.Certificate)
	}
	if b.Host == "" && !b.Unverified {
		return fmt.Errorf("a backend with TLS has a name")
	}
	return validName(b.Host)
}

// secured reports whether backends are asked over TLS.
func (t Target) secured() bool { return t.Filters != nil && t.Filters.TLS != nil }

type plainTarget Target

// MarshalJSON writes a target with TLS so that a gateway of an earlier release, which would ask the pool without TLS, answers 503 by itself.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.secured() {
		filters, tls := *t.Filters, *t.Filters.TLS
		tls.Pool, filters.TLS, filters.Status = t.Pool, &tls, http.StatusServiceUnavailable
		t.Pool, t.Filters = "", &filters
	}
	return json.Marshal(plainTarget(t))
}

// UnmarshalJSON reads it back.
func (t *Target) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*plainTarget)(t)); err != nil {
		return err
	}
	if t.secured() {
		t.Pool, t.Filters.TLS.Pool, t.Filters.Status = t.Filters.TLS.Pool, "", 0
	}
	return nil
}

// Secrets are the Secrets of a site, as namespace/name: certificates for hosts, and for backends.
func (s Site) Secrets() map[string]bool {
	secrets := make(map[string]bool)
	for _, one := range s.Certificates {
		namespace := one.Namespace
		if namespace == "" {
			namespace = s.Namespace
		}
		secrets[namespace+"/"+one.Secret] = true
	}
	for t := range s.Targets() {
		if t.secured() && t.Filters.TLS.Certificate != "" {
			secrets[t.Filters.TLS.Certificate] = true
		}
	}
	return secrets
}

// Targets are all targets of a site, also of copies.
func (s Site) Targets() func(yield func(*Target) bool) {
	return func(yield func(*Target) bool) {
		for _, path := range s.Paths {
			lists := [][]Target{path.Targets}
			for _, rule := range path.Rules {
				lists = append(lists, rule.Targets)
			}
			for _, list := range lists {
				for i := range list {
					if target := &list[i]; !yield(target) || !target.mirrored(yield) {
						return
					}
				}
			}
		}
		for _, session := range s.AllSessions() {
			for i := range session.Targets {
				if !yield(&session.Targets[i]) {
					return
				}
			}
		}
	}
}
