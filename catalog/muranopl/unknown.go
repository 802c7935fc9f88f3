package muranopl

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// LoadStrictly is Load, and lists besides the keys of the model that its embedded classes do not know. Load drops them, as Murano does. Objects of other packages'
// classes, and the root, may have any keys.
func LoadStrictly(ctx context.Context, classes *Classes, model map[string]any) (root *Object, unknown, problems []Problem) {
	root, l, problems := load(ctx, classes, model)
	return root, l.unknown, problems
}

// UnknownKeys are the keys of the last prepared model that its embedded classes do not know, as LoadStrictly lists them.
func UnknownKeys(i *Interpreter) []Problem { return i.unknown }

// unknownKeys notes which keys at a path are none of these names.
func (l *loader) unknownKeys(given map[string]any, names []string, path, label string) {
	for _, key := range sortedKeys(given) {
		if slices.Contains(names, key) || len(l.unknown) >= maxProblems {
			continue
		}
		wanted := "is not known, and has no effect"
		if near := nearest(key, names); near != "" {
			wanted += ": did you mean " + near + "?"
		} else {
			wanted += ": leave it out"
		}
		problem := Problem{Path: join(path, key), Class: label, Wanted: fmt.Sprintf("%s %s", key, wanted)}
		if !slices.Contains(l.unknown, problem) {
			l.unknown = append(l.unknown, problem)
		}
	}
}

// nearest is the name that a key was probably meant to be; "" when none is like it.
func nearest(key string, names []string) string {
	best, least := "", max(1, len(key)/3)+1
	for _, name := range names {
		if distance := edits(strings.ToLower(key), strings.ToLower(name)); distance < least {
			best, least = name, distance
		}
	}
	return best
}

// edits is the Levenshtein distance of two texts: how many bytes are put in, left out or changed.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
