package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Spec is one chosen conformance test, and its result.
type Spec struct {
	Name   string
	Passed bool
	// Skipped is the reason that the test itself gave for skipping; "" where it ran.
	Skipped string
	// Failure is the error of a failed test, in one line.
	Failure string
	Took    time.Duration
}

// reported are the fields that are used here of a spec in Ginkgo's JSON report.
type reported struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

// Report is the result of a run.
type Report struct {
	// Specs are ordered by their names. Setup before and clean-up after all of them is among them only if it failed.
	Specs []Spec
	// Left is the number of further chosen tests that did not begin before the time was over.
	Left int
}

// ReadReport reads Ginkgo's JSON report.
func ReadReport(path string) (Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	var suites []struct {
		PreRunStats struct{ SpecsThatWillRun int }
		SpecReports []reported
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		return Report{}, fmt.Errorf("read Ginkgo's report %s: %w", path, err)
	}
	var report Report
	for _, suite := range suites {
		report.Left += suite.PreRunStats.SpecsThatWillRun
		for _, r := range suite.SpecReports {
			spec := Spec{Name: strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " "), Passed: r.State == "passed", Took: r.RunTime}
			message, _, _ := strings.Cut(strings.TrimSpace(r.Failure.Message), "\n")
			switch {
			case r.State == "skipped" && message != "":
				spec.Skipped = message
			case r.State == "skipped" || r.State == "pending":
				continue // not chosen
			case !spec.Passed:
				spec.Failure = cmp.Or(message, r.State)
			}
			if r.LeafNodeType != "It" {
				if spec.Passed {
					continue
				}
				spec.Name = r.LeafNodeType
			} else {
				report.Left--
			}
			report.Specs = append(report.Specs, spec)
		}
	}
	slices.SortFunc(report.Specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return report, nil
}

// Summary counts the tests of a kind that passed, failed, were skipped and did not begin. It names the failed ones with their reasons. Reasons for skipping are
// followed by the test's name, or by the number of tests if there are several.
func (r Report) Summary(kind string) string {
	var passed, skips int
	var failed []string
	skipped := map[string][]string{} // by reason
	for _, spec := range r.Specs {
		switch {
		case spec.Passed:
			passed++
		case spec.Skipped != "":
			skips++
			skipped[spec.Skipped] = append(skipped[spec.Skipped], spec.Name)
		default:
			failed = append(failed, spec.Name+": "+spec.Failure)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s: %d passed, %d failed, %d skipped, %d not begun\n", len(r.Specs)+r.Left, kind, passed, len(failed), skips, r.Left)
	for _, line := range failed {
		fmt.Fprintf(&text, "failed: %s\n", line)
	}
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		who := skipped[reason][0]
		if more := len(skipped[reason]); more > 1 {
			who = fmt.Sprintf("%d tests", more)
		}
		fmt.Fprintf(&text, "skipped: %s: %s\n", who, reason)
	}
	return text.String()
}
