// Package nft runs Debian's nft for the tables of a gateway, and writes sets of networks for their rules.
package nft

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// Run runs nft, with the programs before it and its arguments, and returns its output. An error has what nft complains of.
func Run(ctx context.Context, command []string, input string) ([]byte, error) {
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Stdin = strings.NewReader(input)
	var complaint bytes.Buffer
	process.Stderr = &complaint
	output, err := process.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %.2000s", strings.Join(command, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return output, nil
}

// Families are the networks of IPv4 and of IPv6, without those that lie in another one: nft refuses intervals that overlap.
func Families(networks []netip.Prefix) (four, six []netip.Prefix) {
	for _, one := range networks {
		if one.Addr().Is4() {
			four = append(four, one.Masked())
		} else {
			six = append(six, one.Masked())
		}
	}
	return disjoint(four), disjoint(six)
}

func disjoint(networks []netip.Prefix) (kept []netip.Prefix) {
	sorted := slices.SortedFunc(slices.Values(networks), func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(a.Bits(), b.Bits()), a.Addr().Compare(b.Addr()))
	})
	for _, one := range sorted {
		if !slices.ContainsFunc(kept, func(wider netip.Prefix) bool { return wider.Overlaps(one) }) {
			kept = append(kept, one)
		}
	}
	return kept
}

// Set writes elements as a set of a rule.
func Set[T any](elements []T) string {
	texts := make([]string, len(elements))
	for i, one := range elements {
		texts[i] = fmt.Sprint(one)
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}
