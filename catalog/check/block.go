package check

import "go.yaml.in/yaml/v3"

// block looks for unreachable instructions, and reports whether the instructions after the block are unreachable.
func (w *walker) block(node *yaml.Node) (ends bool) {
	if w.nodes++; w.nodes > maxNodes {
		return false
	}
	node = followed(node)
	if node.Kind != yaml.SequenceNode {
		return w.instruction(node)
	}
	for _, instruction := range node.Content {
		if ends {
			w.find(Unreachable, w.file, instruction, "nothing comes here: what stands before it leaves the block")
			return true
		}
		ends = w.instruction(instruction)
	}
	return ends
}

// instruction looks into the blocks of an instruction and reports whether the code after it is unreachable.
func (w *walker) instruction(node *yaml.Node) bool {
	keys := map[string]*yaml.Node{}
	each(node, func(key string, value *yaml.Node) { keys[key] = value })
	inner := func(name string) bool { return keys[name] != nil && w.block(keys[name]) }
	has := func(name string) bool { return keys[name] != nil }
	switch {
	case has("Return"), has("Break"), has("Continue"), has("Throw"), has("Rethrow"):
		return true
	case has("If"):
		then, otherwise := inner("Then"), inner("Else")
		return then && otherwise
	case has("While"), has("For"), has("Repeat"):
		inner("Do")
	case has("Match"), has("Switch"):
		cases := keys["Match"]
		if cases == nil {
			cases = keys["Switch"]
		}
		all := true
		each(cases, func(_ string, block *yaml.Node) { all = w.block(block) && all })
		// Of a Switch no case need hold, and then it is the default that ends; of a Match as well.
		return inner("Default") && all
	case has("Try"):
		return w.try(keys)
	case has("Parallel"):
		if list := followed(keys["Parallel"]); list.Kind == yaml.SequenceNode {
			for _, instruction := range list.Content {
				w.instruction(instruction)
			}
		}
	case has("Do"):
		return inner("Do")
	}
	return false
}

func (w *walker) try(keys map[string]*yaml.Node) bool {
	ends := w.block(keys["Try"])
	if otherwise := keys["Else"]; otherwise != nil {
		ends = w.block(otherwise) || ends
	}
	if catch := keys["Catch"]; catch != nil {
		catches := []*yaml.Node{followed(catch)}
		if catches[0].Kind == yaml.SequenceNode {
			catches = catches[0].Content
		}
		for _, one := range catches {
			caught := false
			each(one, func(key string, value *yaml.Node) {
				if key == "Do" {
					caught = w.block(value)
				}
			})
			ends = ends && caught
		}
	}
	if finally := keys["Finally"]; finally != nil {
		ends = w.block(finally) || ends
	}
	return ends
}
