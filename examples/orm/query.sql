-- name: InsertOrder :one
INSERT INTO orders (item, amount) VALUES ($1, $2) RETURNING id;

-- name: TakeStock :execrows
UPDATE stock SET amount = amount - sqlc.arg(taken) WHERE item = sqlc.arg(item);
