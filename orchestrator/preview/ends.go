package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// end is something that a deployment destroys or replaces.
type end struct{ key, text string }

// ends are in the order in which a plan has them.
func (p Plan) ends() (list []end) {
	add := func(text string, key ...string) { list = append(list, end{strings.Join(key, "\x00"), text}) }
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

const (
	// tokenForm is of these tokens; another version of Burano may have another form.
	tokenForm = "1:"
	// mostEnds is how many ends a token tells apart; of more it only tells whether they are the same.
	mostEnds = 256
)

func (p Plan) token() string {
	var keys []string
	for _, one := range p.ends() {
		keys = append(keys, digest(one.key))
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > mostEnds {
		return tokenForm + "all-" + digest(strings.Join(keys, ","))
	}
	return tokenForm + strings.Join(keys, ",")
}

// unseen says what a plan destroys or replaces that a plan with this token did not. known is false for a token of another form.
func (p Plan) unseen(token string) (unseen []string, known bool) {
	rest, known := strings.CutPrefix(token, tokenForm)
	if !known || p.token() == token {
		return nil, known
	}
	shown := strings.Split(rest, ",")
	for _, one := range p.ends() {
		if !slices.Contains(shown, digest(one.key)) && !slices.Contains(unseen, one.text) {
			unseen = append(unseen, one.text)
		}
	}
	return unseen, true
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
