package api

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// services are the applications of an environment's draft, or of a template, at any path below the list of them.
type services struct {
	get    func(c echo.Context, path []string) (any, error)
	add    func(c echo.Context, path []string, value any) error
	put    func(c echo.Context, path []string, value any) error
	delete func(c echo.Context, path []string) (answer any, err error)
}

// register routes the paths below a path such as /templates/:template/services.
func (s services) register(v1 *echo.Group, below string) {
	for _, path := range []string{below, below + "/*"} {
		v1.GET(path, func(c echo.Context) error {
			return answered(c, s.get)
		})
		v1.POST(path, func(c echo.Context) error {
			value, _ := body(c)
			return stored(c, value, s.add)
		})
		v1.PUT(path, func(c echo.Context) error {
			value, there := body(c)
			if !there || path == below && isEmpty(value) {
				value = []any{} // Murano's interpretation
			}
			return stored(c, value, s.put)
		})
		v1.DELETE(path, func(c echo.Context) error {
			return answered(c, s.delete)
		})
	}
}

// answered answers the value at the path, or the rest of it.
func answered(c echo.Context, at func(c echo.Context, path []string) (any, error)) error {
	path, err := pathBelow(c)
	if err != nil {
		return err
	}
	value, err := at(c, path)
	if err != nil {
		return err
	}
	return answer(c, value)
}

// stored stores the sent value, and answers with it.
func stored(c echo.Context, value any, at func(c echo.Context, path []string, value any) error) error {
	path, err := pathBelow(c)
	if err != nil {
		return err
	}
	if err := at(c, path, value); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, value)
}

// isEmpty reports whether Python, and so Murano, treats a value as empty.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
