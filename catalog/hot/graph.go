package hot

import (
	"maps"
	"slices"
)

// Graph maps each resource to the resources that it needs.
type Graph map[string]map[string]bool

// Needs reports whether from needs to, directly or through others.
func (g Graph) Needs(from, to string) bool {
	seen := map[string]bool{}
	var walk func(string) bool
	walk = func(name string) bool {
		if name == to {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		for other := range g[name] {
			if walk(other) {
				return true
			}
		}
		return false
	}
	return walk(from)
}

// Add adds a derived need, unless it would make a circle.
func (g Graph) Add(from, to string) {
	if from != to && !g.Needs(to, from) {
		g[from][to] = true
	}
}

// Circle returns the names on a circle, in the order of need, or nil.
func (g Graph) Circle() []string {
	const open, closed = 1, 2
	marks := map[string]int{}
	var path, circle []string
	var walk func(string) bool
	walk = func(name string) bool {
		switch marks[name] {
		case closed:
			return false
		case open:
			circle = slices.Clone(path[slices.Index(path, name):])
			return true
		}
		marks[name] = open
		path = append(path, name)
		for _, other := range slices.Sorted(maps.Keys(g[name])) {
			if walk(other) {
				return true
			}
		}
		path = path[:len(path)-1]
		marks[name] = closed
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if walk(name) {
			return circle
		}
	}
	return nil
}
