package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// quoteShort quotes a user's text for a message, shortened.
func quoteShort(text string) string { return "'" + short(text) + "'" }

// short is a user's text without unprintable characters, shortened.
func short(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.Map(printable, text)
}

func printable(r rune) rune {
	if strconv.IsPrint(r) {
		return r
	}
	return '?'
}

func textOf(value any) string { return fmt.Sprint(value) }
