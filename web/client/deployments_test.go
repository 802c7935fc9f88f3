package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeploymentsAreReadPageByPage(t *testing.T) {
	const there = 450
	var pages int
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/v1/deployments", r.URL.Path)
		pages++
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		assert.NoError(t, err)
		first := 0
		if marker := r.URL.Query().Get("marker"); marker != "" {
			first, err = strconv.Atoi(marker)
			assert.NoError(t, err)
			first++
		}
		var answer struct {
			Deployments []Deployment `json:"deployments"`
			Next        string       `json:"next_marker,omitempty"`
		}
		for i := first; i < min(first+limit, there); i++ {
			answer.Deployments = append(answer.Deployments, Deployment{ID: fmt.Sprint(i)})
		}
		if first+limit < there {
			answer.Next = fmt.Sprint(first + limit - 1)
		}
		assert.NoError(t, json.NewEncoder(w).Encode(answer))
	})
	for limit, want := range map[int]struct{ rows, pages int }{0: {there, 3}, 1: {1, 1}, 200: {200, 1}, 250: {250, 2}, 1000: {there, 3}} {
		pages = 0
		rows, err := c.Deployments().List(t.Context(), "", limit)
		require.NoError(t, err)
		require.Len(t, rows, want.rows, "limit %d", limit)
		require.Equal(t, want.pages, pages, "limit %d", limit)
		for i, row := range rows {
			require.Equal(t, fmt.Sprint(i), row.ID)
		}
	}
}
