package route

import "fmt"

// MaxMirrors is how many further backends get copies of a request.
const MaxMirrors = 8

// Mirrors are backends that get copies of requests. A gateway of an earlier release sends none.
type Mirrors struct {
	To []Mirror `json:"to"`
}

// Mirror gets copies of some requests, chosen at random: Part of each Of.
type Mirror struct {
	Target Target `json:"target"` // the filters select its protocol, and nothing else
	Part   int    `json:"part"`
	Of     int    `json:"of"`
}

func (m *Mirrors) validate() error {
	if m == nil {
		return nil
	}
	if len(m.To) == 0 || len(m.To) > MaxMirrors {
		return fmt.Errorf("%d backends of copies are none, or more than the %d that gateways take", len(m.To), MaxMirrors)
	}
	for _, one := range m.To {
		if one.Of < 1 || one.Of > MaxWeight || one.Part < 1 || one.Part > one.Of {
			return fmt.Errorf("copies of %d in %d requests are no part of them", one.Part, one.Of)
		}
		if f := one.Target.Filters; f != nil && *f != (Filters{H2C: f.H2C, TLS: f.TLS}) {
			return fmt.Errorf("copies of requests are not filtered again")
		}
		if err := validTargets([]Target{one.Target}, requests); err != nil {
			return err
		}
	}
	return nil
}

// mirrored are the targets of copies of the requests for a target.
func (t *Target) mirrored(yield func(*Target) bool) bool {
	if t.Filters == nil || t.Filters.Mirrors == nil {
		return true
	}
	for i := range t.Filters.Mirrors.To {
		if !yield(&t.Filters.Mirrors.To[i].Target) {
			return false
		}
	}
	return true
}
