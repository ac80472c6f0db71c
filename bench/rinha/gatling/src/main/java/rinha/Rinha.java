package rinha;

import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.OpenInjectionStep;
import io.gatling.javaapi.core.ScenarioBuilder;
import io.gatling.javaapi.core.Simulation;
import io.gatling.javaapi.http.HttpProtocolBuilder;
import java.time.Duration;

/**
 * The load of the Rinha de Backend 2023 Q3: people are created and, where that worked, read back at once; others search, with
 * a term and without one. Every virtual user has a connection of its own, and arrives whether the ones before were served or not.
 */
public final class Rinha extends Simulation {
    private static final String BASE_URL = System.getProperty("rinha.url");
    private static final String PAYLOADS = System.getProperty("rinha.payloads");
    private static final String TERMS = System.getProperty("rinha.terms");

    /** 1 is the real thing, 205 seconds; with less, the same rates are reached in a shorter time. */
    private static final double SCALE = Double.parseDouble(System.getProperty("rinha.scale", "1"));

    private final HttpProtocolBuilder protocol = http.baseUrl(BASE_URL).userAgentHeader("rinha");

    private final ScenarioBuilder create = scenario("create a person, then read it")
            .feed(tsv(PAYLOADS).circular())
            .exec(http("create")
                    .post("/pessoas")
                    .header("Content-Type", "application/json")
                    .body(StringBody(session -> session.getString("payload")))
                    .check(status().in(201, 422, 400))
                    .checkIf((response, session) -> response.status().code() == 201)
                    .then(header("Location").saveAs("location")))
            .pause(Duration.ofMillis(1), Duration.ofMillis(30))
            .doIf(session -> session.contains("location"))
            .then(exec(http("read").get("#{location}")));

    private final ScenarioBuilder search = scenario("search")
            .feed(tsv(TERMS).circular())
            .exec(http("search").get("/pessoas").queryParam("t", "#{t}"));

    private final ScenarioBuilder invalidSearch = scenario("search without a term")
            .exec(http("invalid search").get("/pessoas").check(status().is(400)));

    private static Duration scaled(int seconds) {
        return Duration.ofMillis(Math.round(seconds * 1000 * SCALE));
    }

    private static OpenInjectionStep ramp(int from, int to) {
        return rampUsersPerSec(from).to(to).during(scaled(180));
    }

    public Rinha() {
        setUp(
                create.injectOpen(
                        constantUsersPerSec(2).during(scaled(10)),
                        constantUsersPerSec(5).during(scaled(15)),
                        ramp(6, 600)),
                search.injectOpen(constantUsersPerSec(2).during(scaled(25)), ramp(6, 100)),
                invalidSearch.injectOpen(constantUsersPerSec(2).during(scaled(25)), ramp(6, 40)))
                .protocols(protocol);
    }
}
