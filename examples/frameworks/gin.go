package frameworks

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Gin serves the shop by gin.
func (s *Shop) Gin() http.Handler {
	router := gin.New()
	router.Use(gin.Recovery(), func(c *gin.Context) {
		if user := c.GetHeader("X-User"); user != "" {
			c.Request = WithUser(c.Request, user) // c.Set would not reach the ScopeFunc
		}
	})
	router.POST("/shops/:shop/orders", GinOnce(s.Once("create_order"), func(c *gin.Context) {
		var o Order
		if err := c.BindJSON(&o); err != nil {
			return // BindJSON has answered 400
		}
		o.Shop = c.Param("shop")
		switch o, err := s.Create(c.Request.Context(), o); {
		case errors.Is(err, ErrSoldOut):
			c.JSON(http.StatusConflict, gin.H{"error": err.Error()})
		case err != nil:
			c.Status(http.StatusInternalServerError)
		default:
			c.Status(http.StatusCreated)
			c.Header("Location", fmt.Sprintf("/orders/%d", o.ID)) // gin sends headers with the body
			c.JSON(http.StatusCreated, o)
		}
	}))
	return router
}

// GinOnce protects a handler. It is the last one of its route: gin would not run the handlers
// of c.Next a second time if the database aborts the transaction because of a conflict.
func GinOnce(once func(http.Handler) http.Handler, handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		w, r := c.Writer, c.Request
		defer func() { c.Writer, c.Request = w, r }() // also for gin.Recovery, after a panic
		once(http.HandlerFunc(func(captured http.ResponseWriter, r *http.Request) {
			response := &responseWriter{ResponseWriter: w, captured: captured, status: http.StatusOK, size: -1}
			c.Writer, c.Request, c.Errors = response, r, nil
			handler(c)
			response.WriteHeaderNow()
		})).ServeHTTP(w, r)
	}
}

// responseWriter is gin's ResponseWriter over the response that is captured. As in gin, the
// status and the headers are those at the time of the first write.
type responseWriter struct {
	gin.ResponseWriter // of the client: for CloseNotify and Pusher

	captured     http.ResponseWriter
	status, size int // size is -1 before the first write
}

func (w *responseWriter) Header() http.Header         { return w.captured.Header() }
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.captured }
func (w *responseWriter) Status() int                 { return w.status }
func (w *responseWriter) Size() int                   { return w.size }
func (w *responseWriter) Written() bool               { return w.size >= 0 }

func (w *responseWriter) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status = status
	}
}

func (w *responseWriter) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.captured.WriteHeader(w.status)
	}
}

func (w *responseWriter) Write(b []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.captured.Write(b)
	w.size += n
	return n, err
}

func (w *responseWriter) WriteString(s string) (int, error) {
	return io.WriteString(struct{ io.Writer }{w}, s)
}

func (w *responseWriter) Flush() {
	w.WriteHeaderNow()
	_ = http.NewResponseController(w.captured).Flush()
}

func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.captured).Hijack()
}
