// Command go serves the benchmark's requests with net/http and pgx: HTTP/1.1 on PORT, HTTP/2 in clear text on the same.
package main

import (
	"context"
	"encoding/json"
	"html/template"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type person struct {
	ID    int    `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type counter struct {
	ID    int `json:"id"`
	Value int `json:"value"`
}

type fortune struct {
	ID      int
	Message string
}

type message struct {
	Message string `json:"message"`
}

var body = []byte(strings.Repeat("x", 100_000))

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("Hello, World!"))
}

func large(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Print(err)
	}
}

func query(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.URL.Query().Get("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var p person
		row := pool.QueryRow(r.Context(), "SELECT id, name, email FROM people WHERE id = $1", id)
		if err := row.Scan(&p.ID, &p.Name, &p.Email); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		writeJSON(w, p)
	}
}

func queries(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.URL.Query().Get("count"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		people := make([]person, count)
		batch := &pgx.Batch{}
		for i := range people {
			p := &people[i]
			batch.Queue("SELECT id, name, email FROM people WHERE id = $1", 1+rand.IntN(10_000)).QueryRow(func(row pgx.Row) error {
				return row.Scan(&p.ID, &p.Name, &p.Email)
			})
		}
		if err := pool.SendBatch(r.Context(), batch).Close(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		writeJSON(w, people)
	}
}

func update(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var changed counter
		err := pool.AcquireFunc(r.Context(), func(c *pgxpool.Conn) error {
			row := c.QueryRow(r.Context(), "SELECT id, value FROM counters WHERE id = $1", 1+rand.IntN(10_000))
			if err := row.Scan(&changed.ID, &changed.Value); err != nil {
				return err
			}
			changed.Value = 1 + rand.IntN(10_000)
			_, err := c.Exec(r.Context(), "UPDATE counters SET value = $1 WHERE id = $2", changed.Value, changed.ID)
			return err
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		writeJSON(w, changed)
	}
}

var page = template.Must(template.New("fortunes").Parse(`<!DOCTYPE html>
<html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>
{{range .}}<tr><td>{{.ID}}</td><td>{{.Message}}</td></tr>
{{end}}</table></body></html>
`))

func fortunes(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rows, _ := pool.Query(r.Context(), "SELECT id, message FROM fortunes")
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[fortune])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		all = append(all, fortune{Message: "Additional fortune added at request time."})
		slices.SortFunc(all, func(a, b fortune) int { return strings.Compare(a.Message, b.Message) })
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := page.Execute(w, all); err != nil {
			log.Print(err)
		}
	}
}

func main() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL")+"&pool_max_conns=20")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", hello)
	mux.HandleFunc("GET /json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, message{"Hello, World!"}) })
	mux.HandleFunc("GET /query", query(pool))
	mux.HandleFunc("GET /queries", queries(pool))
	mux.HandleFunc("GET /update", update(pool))
	mux.HandleFunc("GET /fortunes", fortunes(pool))
	mux.HandleFunc("GET /body", large)
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServer(http.Dir(os.Getenv("STATIC_DIRECTORY")))))

	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		<-stop.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}
