CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item text NOT NULL,
    amount integer NOT NULL
);

CREATE TABLE stock (
    item text PRIMARY KEY,
    amount integer NOT NULL CHECK (amount >= 0)
);
