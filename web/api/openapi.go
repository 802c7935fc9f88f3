package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var description []byte

// describe answers /openapi.json.
func describe() (echo.HandlerFunc, error) {
	var document map[string]any
	if err := yaml.Unmarshal(description, &document); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write openapi.json: %w", err)
	}
	return func(c echo.Context) error { return c.JSONBlob(http.StatusOK, text) }, nil
}
