package muranopl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Spec selects versions of a package: all its comparisons must hold. The zero Spec admits every version.
type Spec []comparison

type comparison struct {
	operator string // < <= == != >= >
	version  *semver.Version
}

var clause = regexp.MustCompile(`^(==|!=|<=|>=|=|<|>)?\s*(\d+)(?:\.(\d+))?(?:\.(\d+)(.*))?$`)

// ParseSpec reads comparisons joined by commas, such as ">=1.2, <3". A version without an operator must be met exactly. A partial one means all versions
// that begin with it (as in Murano's normalisation, also for "!=", which admits only versions above). "" and "*" admit everything.
func ParseSpec(text string) (Spec, error) {
	var spec Spec
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" || part == "*" {
			continue
		}
		comparisons, err := parseClause(part)
		if err != nil {
			return nil, fmt.Errorf("%q is no version spec, such as \">=1.2, <3\": %w", text, err)
		}
		spec = append(spec, comparisons...)
	}
	return spec, nil
}

// RequirementSpec returns the meaning of a spec in a manifest: in a requirement "" means every version 0.x.
func RequirementSpec(text string) string {
	if strings.TrimSpace(text) == "" {
		return "==0"
	}
	return text
}

func parseClause(text string) (Spec, error) {
	match := clause.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("%q is no comparison", text)
	}
	operator := match[1]
	if operator == "" || operator == "=" {
		operator = "=="
	}
	if match[4] != "" {
		version, err := semver.StrictNewVersion(match[2] + "." + match[3] + "." + match[4] + match[5])
		if err != nil {
			return nil, err
		}
		return Spec{{operator, version}}, nil
	}
	major, err := strconv.ParseUint(match[2], 10, 31)
	if err != nil {
		return nil, err
	}
	minor, next := uint64(0), semver.New(major+1, 0, 0, "0", "")
	if match[3] != "" {
		if minor, err = strconv.ParseUint(match[3], 10, 31); err != nil {
			return nil, err
		}
		next = semver.New(major, minor+1, 0, "0", "")
	}
	// The versions of a partial one lie from first (or, below it, before its pre-releases) to before next.
	first, before := semver.New(major, minor, 0, "", ""), semver.New(major, minor, 0, "0", "")
	switch operator {
	case ">", "!=":
		return Spec{{">=", next}}, nil
	case ">=":
		return Spec{{">=", first}}, nil
	case "<":
		return Spec{{"<", before}}, nil
	case "<=":
		return Spec{{"<", next}}, nil
	}
	return Spec{{">=", first}, {"<", next}}, nil
}

// Admits reports whether a version satisfies the spec.
func (s Spec) Admits(version *semver.Version) bool {
	for _, c := range s {
		order := version.Compare(c.version)
		var met bool
		switch c.operator {
		case "<":
			met = order < 0
		case "<=":
			met = order <= 0
		case "==":
			met = order == 0
		case "!=":
			met = order != 0
		case ">=":
			met = order >= 0
		case ">":
			met = order > 0
		}
		if !met {
			return false
		}
	}
	return true
}
