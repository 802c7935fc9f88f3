package keeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type named struct{}

func (named) Name() string                                       { return "named" }
func (named) Every() time.Duration                               { return time.Hour }
func (named) Look(context.Context, *Environment) (Result, error) { return Result{}, nil }

// Texts of findings come in parts from a cluster's machines.
func TestWhatALookFindsHasABound(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	look := lookOf{duty: named{}}
	for i := range 2 * mostFindings {
		look.result.Findings = append(look.result.Findings, Finding{Kind: "k", Subject: fmt.Sprint(i, long), Text: long, Mends: long})
	}
	rows := look.findings()
	require.Len(t, rows, mostFindings)
	require.LessOrEqual(t, len(rows[0].Text)+len(rows[0].Mends), 2*longestText+10)
	require.LessOrEqual(t, len(rows[0].Subject), longestName+10)
	look.err = errors.New(long)
	require.LessOrEqual(t, len(look.findings()[0].Text), longestText+10)
}
