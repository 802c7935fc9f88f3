package api

import (
	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/requestid"
)

// requestIDHeader is on every answer.
const requestIDHeader = requestid.Header

// requestID gives the request the caller's id, so that one id leads through the logs of several services. Without a valid one
// it makes a new id.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		id := request.Header.Get(requestIDHeader)
		if !requestid.Valid(id) {
			id = requestid.New()
		}
		c.Response().Header().Set(requestIDHeader, id)
		c.SetRequest(request.WithContext(requestid.With(request.Context(), id)))
		return next(c)
	}
}
