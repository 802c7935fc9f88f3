package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// part is one effect of a deployment: it destroys or replaces an object, or makes one as it is written.
type part struct{ key, text string }

// ends are the parts that destroy or replace something, in the order in which a plan has them.
func (p Plan) ends() (list []part) {
	add := func(text string, key ...string) {
		list = append(list, part{digest(strings.Join(key, "\x00")), text})
	}
	for _, one := range p.Changes {
		if one.What == "removed" {
			add(fmt.Sprintf("%s (%s) is removed", cmp.Or(one.Name, one.ID), one.Type), "removed", one.ID)
		}
	}
	for _, one := range p.Losses {
		add(fmt.Sprintf("the %s %s is deleted", one.Kind, strings.TrimSpace(one.Object+" "+one.CloudID)), "deleted", one.Kind, one.ObjectID, one.CloudID)
	}
	for _, one := range p.replaced {
		add(one.Text, "replaced", one.ObjectID, one.Text)
	}
	for _, one := range p.Consents {
		add(one.Text, "lost", one.ObjectID, one.Text)
	}
	return list
}

// Draft is a draft as its user has written it.
type Draft struct{ parts []part }

// DraftOf is the draft of a model that is to be, in the API's form. before is the model that was deployed last, nil for none. sum is a keyed checksum in hexadecimal: a draft
// has secrets, and tokens are in addresses.
func DraftOf(before, drafted map[string]any, sum func([]byte) string) (draft Draft, err error) {
	had, has := Objects(before), Objects(drafted)
	for _, id := range slices.Sorted(maps.Keys(has)) {
		now, was := has[id], had[id]
		if now.Path == "" { // of the environment, whose applications are objects themselves
			delete(now.Fields, "services")
			delete(was.Fields, "services")
		}
		written, err := json.Marshal(map[string]any{"id": id, "type": now.Type, "fields": now.Fields})
		if err != nil {
			return draft, fmt.Errorf("read object %s of the draft: %w", id, err)
		}
		one := part{key: sum(written)} // without a text there is nothing to be done
		switch differing := differences(was.Fields, now.Fields); {
		case was.ID == "":
			one.text = fmt.Sprintf("%s (%s) is added", cmp.Or(now.Name, id), now.Type)
		case len(differing) > 0:
			one.text = fmt.Sprintf("%s (%s) is changed: %s", cmp.Or(now.Name, id), now.Type, strings.Join(differing, ", "))
		}
		draft.parts = append(draft.parts, one)
	}
	return draft, nil
}

// differences lists the fields of an object that are new or changed, or else the fields that are gone.
func differences(was, now map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if value, there := was[name]; !there || !reflect.DeepEqual(value, now[name]) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, there := now[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// Of is the plan with a token that also has the objects of its draft.
func (d Draft) Of(plan Plan) Plan {
	plan.written = d.parts
	plan.Token = tokenForm + shortened(plan.ends()) + tokenParts + shortened(d.parts)
	return plan
}

const (
	// tokenForm is of these tokens; another version of Burano may have another form. tokenParts is between the ends and the objects of the draft.
	tokenForm  = "2:"
	tokenParts = "."
	// mostParts is how many parts of each kind a token distinguishes; of more it has one checksum.
	mostParts = 256
	// keySize is how many characters of a checksum a token has.
	keySize = 12
)

// EndsOf is a token without the objects of the draft, for a deployment that has begun.
func EndsOf(token string) string {
	ends, _, _ := strings.Cut(token, tokenParts)
	return ends
}

// shortened is a list as tokens have it.
func shortened(list []part) string {
	var keys []string
	for _, one := range list {
		keys = append(keys, one.key[:keySize])
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > mostParts {
		return "all-" + digest(strings.Join(keys, ","))
	}
	return strings.Join(keys, ",")
}

// unseen lists the effects of a plan that a plan with this token did not have. known is false for a token of another form.
func (p Plan) unseen(token string) (unseen []string, known bool) {
	rest, known := strings.CutPrefix(token, tokenForm)
	if !known {
		return nil, false
	}
	ends, written, both := strings.Cut(rest, tokenParts)
	unseen = notIn(ends, p.ends())
	if both {
		unseen = append(unseen, notIn(written, p.written)...)
	}
	return unseen, true
}

// notIn are the texts of the parts that a list of a token does not have.
func notIn(shown string, list []part) (texts []string) {
	if shortened(list) == shown {
		return nil
	}
	keys := strings.Split(shown, ",")
	for _, one := range list {
		if one.text != "" && !slices.Contains(keys, one.key[:keySize]) && !slices.Contains(texts, one.text) {
			texts = append(texts, one.text)
		}
	}
	return texts
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
