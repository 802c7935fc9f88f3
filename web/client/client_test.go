package client

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesAreReadOutOfEveryShapeOfError(t *testing.T) {
	for body, wanted := range map[string]string{
		`{"message":"Environment with id f not found<br /><br />\n\n\n","code":"404 Not Found","title":"Not Found"}`:   "Environment with id f not found",
		`{"error":{"code":401,"title":"Unauthorized","message":"The request you have made requires authentication."}}`: "The request you have made requires authentication.",
		`{"explanation":"Bad","error":{"message":"","type":"X"}}`:                                                      "Bad",
		"404 Not Found\n\nThe resource could not be found.\n\n   ":                                                     "404 Not Found\n\nThe resource could not be found.",
		``: "the server gave no reason",
	} {
		require.Equal(t, wanted, message([]byte(body)))
	}
}

func TestADeletionIsWaitedForUntilTheEnvironmentIsGone(t *testing.T) {
	asked := 0
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked++; {
		case r.URL.Path == "/v1/environments/e/deployments":
			fmt.Fprint(w, `{"deployments": [{"id": "d"}]}`)
		case r.URL.Path == "/v1/environments/e/deployments/d":
			fmt.Fprint(w, `{"reports": [{"level": "info", "text": "begun"}, {"level": "error", "text": "no right to delete servers"}]}`)
		case r.URL.Path == "/v1/environments/e" && asked < 3:
			fmt.Fprint(w, `{"id": "e", "status": "deleting"}`)
		case r.URL.Path == "/v1/environments/e":
			fmt.Fprint(w, `{"id": "e", "status": "delete failure"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	require.NoError(t, c.Environments().WaitDeleted(t.Context(), "gone"))
	require.EqualError(t, c.Environments().WaitDeleted(t.Context(), "e"), "it failed:\n  no right to delete servers")
}
