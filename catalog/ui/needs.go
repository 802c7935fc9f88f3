package ui

import "slices"

// Size is the least size of a server; 0 for any.
type Size struct {
	CPUs   int64
	Memory int64 // MiB
	Disk   int64 // GiB
}

// Needs are an application's needs of the cloud, as far as its forms show them.
type Needs struct {
	Images     []string // types of images for servers, such as linux.kubernetes; "" for any
	Sizes      []Size   // of servers
	Containers []string // names of container images that the forms suggest, in the cloud's image service
}

// NeedsOf reads the needs from empty forms. Optional fields need nothing. inCloud reports whether a name is that of a container image in the cloud's
// image service.
func NeedsOf(forms []FormView, inCloud func(name string) bool) (needs Needs) {
	for _, form := range forms {
		for _, field := range form.Fields {
			suggested, _ := field.Initial.(string)
			switch {
			case field.Type == "image" && field.Required:
				kind, _ := field.Options["image_type"].(string)
				needs.Images = append(needs.Images, kind)
			case field.Type == "flavor" && field.Required:
				limits, _ := field.Options["requirements"].(map[string]any)
				needs.Sizes = append(needs.Sizes, Size{CPUs: number(limits["min_vcpus"]), Memory: number(limits["min_memory_mb"]), Disk: number(limits["min_disk"])})
			case inCloud(suggested):
				needs.Containers = append(needs.Containers, suggested)
			}
		}
	}
	slices.Sort(needs.Images)
	needs.Images = slices.Compact(needs.Images)
	slices.Sort(needs.Containers)
	needs.Containers = slices.Compact(needs.Containers)
	return needs
}

// number is a number of an option; 0 where it is none.
func number(value any) int64 {
	switch v := value.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}
