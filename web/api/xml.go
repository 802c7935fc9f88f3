package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/door"
)

// columns is the order of an environment's fields in Murano's XML; others come after them, by name.
var columns = []string{"created", "id", "tenant_id", "version", "updated", "name", "description_text", "status"}

// jsonTime is a time as JSON answers have it; XML answers have a blank in the place of the T.
var jsonTime = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)$`)

// asXML turns the JSON answers of next into Murano's XML: the first key is the root, the items of a list are named as the list
// without its last s, and nothing has attributes.
func asXML(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		response := c.Response()
		answer := &bufferedAnswer{header: response.Header(), status: http.StatusOK}
		writer := response.Writer
		response.Writer = answer
		err := next(c)
		response.Writer = writer
		if err != nil {
			return err
		}
		response.Committed, response.Size = false, 0
		response.Header().Del(echo.HeaderContentLength) // of the JSON
		var value map[string]any
		decoder := json.NewDecoder(&answer.body)
		decoder.UseNumber()
		if answer.status != http.StatusOK || decoder.Decode(&value) != nil || len(value) == 0 {
			return c.Blob(answer.status, response.Header().Get(echo.HeaderContentType), answer.body.Bytes())
		}
		root := inColumns(value)[0]
		var out bytes.Buffer
		if writeXML(&out, root, value[root], ""); out.Len() > maxAnswer {
			response.Header().Del(echo.HeaderContentType)
			return tooLargeAnswer(&door.Exceeded{What: "the answer as XML", Bound: door.Bytes(maxAnswer)})
		}
		response.Header().Del(echo.HeaderContentType)
		return c.Blob(http.StatusOK, echo.MIMEApplicationXML, out.Bytes())
	}
}

// bufferedAnswer buffers an answer, to be written in another form.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *bufferedAnswer) Header() http.Header               { return a.header }
func (a *bufferedAnswer) WriteHeader(status int)            { a.status = status }
func (a *bufferedAnswer) Write(content []byte) (int, error) { return a.body.Write(content) }

func inColumns(object map[string]any) []string {
	place := func(key string) int {
		if i := slices.Index(columns, key); i >= 0 {
			return i
		}
		return len(columns)
	}
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
}

// writeXML writes a value. It stops when the answer has become too large: names are written with each of a list's items.
func writeXML(out *bytes.Buffer, name string, value any, indent string) {
	if out.Len() > maxAnswer {
		return
	}
	children := func(write func()) {
		fmt.Fprintf(out, "%s<%s>\n", indent, name)
		if write(); out.Len() <= maxAnswer {
			fmt.Fprintf(out, "%s</%s>\n", indent, name)
		}
	}
	inner := indent + "    "
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			fmt.Fprintf(out, "%s<%s/>\n", indent, name)
			return
		}
		children(func() {
			for _, key := range inColumns(value) {
				writeXML(out, key, value[key], inner)
			}
		})
	case []any:
		if len(value) == 0 {
			fmt.Fprintf(out, "%s<%s/>\n", indent, name)
			return
		}
		item, plural := strings.CutSuffix(name, "s")
		if !plural {
			item = "item"
		}
		children(func() {
			for _, one := range value {
				writeXML(out, item, one, inner)
			}
		})
	default:
		text := fmt.Sprint(value)
		switch value := value.(type) {
		case nil:
			text = "None"
		case bool:
			text = map[bool]string{true: "True", false: "False"}[value]
		case string:
			text = jsonTime.ReplaceAllString(value, "$1 $2")
		}
		fmt.Fprintf(out, "%s<%s>", indent, name)
		_ = xml.EscapeText(out, []byte(text)) // a buffer takes everything
		fmt.Fprintf(out, "</%s>\n", name)
	}
}
