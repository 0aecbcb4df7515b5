import coursierapi.Credentials;
import coursierapi.Dependency;
import coursierapi.Fetch;
import coursierapi.MavenRepository;
import coursierapi.error.CoursierError;
import java.io.File;

/** Fetches artifacts as sbt does, and prints the paths of the files: Coursier URL USER PASSWORD GROUP:ARTIFACT:VERSION... */
public final class Coursier {
    private Coursier() {}

    public static void main(String[] arguments) {
        MavenRepository repository = MavenRepository.of(arguments[0]);
        if (!arguments[1].isEmpty()) {
            repository.withCredentials(Credentials.of(arguments[1], arguments[2]));
        }
        Fetch fetch = Fetch.create().withRepositories(repository);
        for (int each = 3; each < arguments.length; each++) {
            String[] names = arguments[each].split(":");
            fetch.addDependencies(Dependency.of(names[0], names[1], names[2]));
        }
        try {
            for (File file : fetch.fetch()) {
                System.out.println(file);
            }
        } catch (CoursierError failure) {
            System.out.println(failure.getMessage());
            System.exit(1);
        }
    }
}
