package client

import (
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
