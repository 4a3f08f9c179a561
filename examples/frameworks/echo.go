package frameworks

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Echo serves the shop by echo.
func (s *Shop) Echo() http.Handler {
	e := echo.New()
	e.Use(middleware.Recover(), echo.WrapMiddleware(authenticate))
	e.POST("/shops/:shop/orders", func(c echo.Context) error {
		var o Order
		if err := c.Bind(&o); err != nil {
			return err
		}
		o.Shop = c.Param("shop")
		o, err := s.Create(c.Request().Context(), o)
		switch {
		case errors.Is(err, ErrSoldOut):
			return echo.NewHTTPError(http.StatusConflict, err.Error())
		case err != nil:
			return err
		}
		c.Response().Before(func() { c.Response().Header().Set("Location", fmt.Sprintf("/orders/%d", o.ID)) })
		return c.JSON(http.StatusCreated, o)
	}, EchoOnce(s.Once("create_order")))
	return e
}

// EchoOnce is the middleware of one route. Do not use echo.WrapMiddleware for Once: the
// error that a handler returns would become a response only after the transaction has
// committed an empty one.
func EchoOnce(once func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			w, r := c.Response(), c.Request()
			defer func() { c.SetResponse(w); c.SetRequest(r) }() // also for Recover, after a panic
			once(http.HandlerFunc(func(captured http.ResponseWriter, r *http.Request) {
				c.SetResponse(echo.NewResponse(captured, c.Echo()))
				c.SetRequest(r)
				if err := next(c); err != nil {
					c.Error(err) // writes the response to captured
				}
			})).ServeHTTP(w, r)
			return nil
		}
	}
}
