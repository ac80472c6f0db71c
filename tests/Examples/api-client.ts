// A client of examples/api, of the types that openapi-typescript makes of its document: tests/Examples/ApiTest.php.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const client = createClient<paths>({ baseUrl: process.argv[2], headers: { authorization: `Bearer ${process.argv[3]}` } });

const added = await client.POST("/books", {
    body: { title: "Weaving", genre: "craft", pages: 320, authors: [{ name: "Ada" }], published: "2026-01-02T03:04:05Z" },
});
const book: components["schemas"]["Book"] = added.data!;
const id: number = book.id;
const email: string | null = book.authors[0].email;

const found = await client.GET("/books/{id}", { params: { path: { id } } });
const list = await client.GET("/books", { params: { query: { genre: "craft", limit: 5 } } });
const invalid = await client.POST("/books", { body: { title: "", genre: "craft", pages: -1 } });
const problem: components["schemas"]["Problem"] = invalid.error!;
const removed = await client.DELETE("/books/{id}", { params: { path: { id } } });
const missing = await client.GET("/books/{id}", { params: { path: { id } } });

// The document says what is wrong; without the error that is expected, these lines would not compile.
// @ts-expect-error a genre that does not exist
const unknownGenre = () => client.GET("/books", { params: { query: { genre: "poetry" } } });
// @ts-expect-error a book without pages
const withoutPages = () => client.POST("/books", { body: { title: "x", genre: "craft" } });

console.log(JSON.stringify({
    status: added.response.status, id, email, title: found.data!.title, published: found.data!.published, count: list.data!.length,
    pointers: problem.errors!.map((fault) => fault.pointer), removed: removed.response.status, missing: missing.error!.detail,
}));
