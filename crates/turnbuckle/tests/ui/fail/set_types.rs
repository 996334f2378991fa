use std::{cell::Cell, rc::Rc};

use turnbuckle::{Server, tools};

struct Point {
    x: i64,
}

struct Plotter;

#[tools]
impl Plotter {
    /// The type can't be decoded.
    #[tool]
    async fn plot(&self, point: Point) -> i64 {
        point.x
    }

    /// The type is no reply.
    #[tool]
    fn origin(&self) -> Point {
        Point { x: 0 }
    }

    /// The future is not `Send`.
    #[tool]
    async fn count(&self) -> i64 {
        let shared = Rc::new(1);
        std::future::ready(()).await;
        *shared
    }
}

/// It can't be shared.
struct Counter {
    count: Cell<i64>,
}

#[tools]
impl Counter {
    #[tool]
    async fn read(&self) -> i64 {
        self.count.get()
    }
}

/// It has no set.
struct Other;

fn main() {
    let counter = Counter { count: Cell::new(0) };
    let _ = Server::new("ui", "1.0").group(Plotter).group(counter).group(Other);
}
